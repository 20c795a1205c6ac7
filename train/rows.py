"""Samples with their credit as rows for a trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.types import Record
from train.credit import Credit, discounted, loss_weights
from train.samples import Sample

__all__ = ["RlRow", "rl_rows"]


class RlRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One sample, as it is written. Lists of one row that belong to tokens have equal lengths."""

    episode_id: str
    task_id: str
    """The group."""
    attempt: int
    branch: int
    kind: str
    agent: str
    exact: bool
    prompt_ids: NDArray[np.int32]
    response_ids: NDArray[np.int32]
    response_mask: NDArray[np.int8]
    logprobs: NDArray[np.float32] | None
    reward: float
    """The episode's."""
    advantage: float
    """The episode's within its group, for every token with mask 1."""
    loss_weight: float
    """The row's share of its episode's trained tokens: multiply its mean token loss by it, and divide the
    sum over a batch by the number of episodes, and every episode weighs the same."""
    step_starts: NDArray[np.int32]
    """Where each call's sampled tokens begin in the response."""
    step_stops: NDArray[np.int32]
    step_returns: NDArray[np.float32]
    """r_t = gamma^(T - t) r_T."""
    step_calls: NDArray[np.int32]
    step_weights: list[str]
    """Version of the policy's weights that sampled each step; empty where the server did not say."""
    images: list[str]
    """SHA-256 of each image, in order; `Trace.images` has them."""

    @property
    def size(self) -> int:
        """Bytes that it takes, roughly."""
        return 4 * len(self.prompt_ids) + 12 * len(self.response_ids) + 500


def rl_rows(samples: Sequence[Sample], credit: Credit, gamma: float = 1.0) -> list[RlRow]:
    """All rows of an episode, from all of its samples."""
    tokens = [int(np.count_nonzero(sample.response_mask)) for sample in samples]
    shares = loss_weights(tokens, [sample.episode_id for sample in samples])
    return [
        _row(sample, credit, gamma, float(share))
        for sample, share in zip(samples, shares, strict=True)
    ]


def _row(sample: Sample, credit: Credit, gamma: float, share: float) -> RlRow:
    steps = sample.steps
    turns, last = [step.turn for step in steps], [step.last for step in steps]
    return RlRow(
        episode_id=sample.episode_id,
        task_id=sample.task_id,
        attempt=sample.attempt,
        branch=sample.branch,
        kind=sample.kind,
        agent=sample.agent,
        exact=sample.exact,
        prompt_ids=sample.prompt_ids,
        response_ids=sample.response_ids,
        response_mask=sample.response_mask.astype(np.int8),
        logprobs=sample.logprobs,
        reward=credit.reward,
        advantage=credit.advantage,
        loss_weight=share,
        step_starts=_int32([step.start for step in steps]),
        step_stops=_int32([step.stop for step in steps]),
        step_returns=discounted(credit.reward, turns, last, gamma).astype(np.float32),
        step_calls=_int32([step.call for step in steps]),
        step_weights=[step.weights for step in steps],
        images=list(sample.images),
    )


def _int32(values: Sequence[Any]) -> NDArray[np.int32]:
    return np.asarray(values, np.int32)
