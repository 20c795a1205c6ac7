"""Samples as verl's trainer takes them: `AgentLoopOutput`s, and rows of TransferQueue.

verl 0.9.1 (verl/trainer/ppo/v1/agent_loop_tq.py): keys are `{uid}_{session}_{index}`, all rows of a write
have the same fields, the reward is on the last token, and the last row stands for its session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from verl.experimental.agent_loop import AgentLoopOutput, AgentLoopWorker
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics

from rollout.types import Episode, Outcome, Trace
from train.advantages import CreditedRow
from train.credit import Credit
from train.messages import anchor
from train.samples import Sample
from train.verl.vision import decode_image

__all__ = ["CREDIT", "TqRow", "credited", "outputs", "tq_row"]

CREDIT = "anyharness"
"""The key in `extra_fields` for what our trainer needs to know of a row."""


@dataclass(frozen=True)
class TqRow:
    """One row on its way into TransferQueue."""

    key: str
    fields: dict[str, Any]
    tag: dict[str, Any]


def outputs(
    episode: Episode,
    trace: Trace,
    samples: Sequence[Sample],
    credit: Credit,
    *,
    version: int,
    anchors: bool = False,
) -> list[AgentLoopOutput]:
    """An episode's rows, one that is trained last: verl reads the session's advantage off it.

    `version` is that of the weights where no call says which sampled it.
    """
    ordered = sorted(samples, key=lambda sample: bool(sample.response_mask.any()))
    return [_output(episode, trace, one, credit, version, anchors) for one in ordered]


def _output(
    episode: Episode,
    trace: Trace,
    sample: Sample,
    credit: Credit,
    version: int,
    anchors: bool,
) -> AgentLoopOutput:
    mask = sample.response_mask & credit.trained
    versions = _versions(sample, version)
    pictures = [decode_image(trace.images[digest].data) for digest in sample.images]
    passed = float(episode.outcome is Outcome.PASSED)
    return AgentLoopOutput(
        prompt_ids=sample.prompt_ids.tolist(),
        response_ids=sample.response_ids.tolist(),
        response_mask=mask.astype(int).tolist(),
        response_logprobs=None if sample.logprobs is None else sample.logprobs.tolist(),
        multi_modal_data={"images": pictures} if pictures else {},
        reward_score=credit.reward,
        num_turns=episode.calls,
        metrics=AgentLoopMetrics(
            generate_sequences=episode.timing.model,
            tool_calls=episode.timing.tools,
            compute_score=episode.timing.grading,
        ),
        extra_fields={
            "min_global_steps": min(versions),
            "max_global_steps": max(versions),
            "turn_scores": [],
            "tool_rewards": [],
            "reward_extra_info": {"acc": passed, "score": credit.reward},
            CREDIT: _credit(sample, credit, trace, anchors),
        },
    )


def _credit(sample: Sample, credit: Credit, trace: Trace, anchors: bool) -> dict[str, Any]:
    steps, calls = sample.steps, {call.index: call for call in trace.calls}
    return {
        "reward": credit.reward,
        "starts": [step.start for step in steps],
        "stops": [step.stop for step in steps],
        "turns": [step.turn for step in steps],
        "last": [step.last for step in steps],
        "anchors": [anchor(calls[step.call]) for step in steps] if anchors else [],
    }


def _versions(sample: Sample, version: int) -> list[int]:
    """The versions of the weights that sampled a row; `3-4` is a reply over an update."""
    told = [part for weights in sample.weights for part in weights.split("-")]
    return [int(part) for part in told if part.isdigit()] or [version]


def credited(key: str, tokens: int, extra: dict[str, Any]) -> CreditedRow:
    """A row as `train.advantages` knows it, from its key and `extra_fields`."""
    uid, session, _ = key.rsplit("_", 2)
    return CreditedRow(group=uid, episode=f"{uid}_{session}", tokens=tokens, **extra[CREDIT])


def tq_row(
    worker: AgentLoopWorker,
    output: AgentLoopOutput,
    prompt: dict[str, Any],
    session: int,
    index: int,
) -> TqRow:
    """As `AgentLoopWorkerTQ` writes it.

    `prompt` is the dataset's row, with verl's `uid` and `global_steps`.
    """
    fields = output.as_dict()
    fields.pop(
        "multi_modal_data", None
    )  # raw pictures stay here; what the model sees of them travels
    ids = torch.cat([fields["prompts"], fields["responses"]])
    seen = worker._compute_multi_modal_inputs(output, ids)
    positions = worker._compute_position_ids(
        ids.unsqueeze(0), torch.ones_like(ids).unsqueeze(0), seen
    ).squeeze(0)
    fields |= prompt | {
        "session_id": session,
        "loss_mask": fields["response_mask"],
        "input_ids": ids,
        "position_ids": positions,
        "multi_modal_inputs": seen,
    }
    lengths = len(fields["prompts"]), len(fields["responses"])
    tag = {
        "status": "success",
        "prompt_len": lengths[0],
        "response_len": lengths[1],
        "seq_len": sum(lengths),
        "global_steps": prompt["global_steps"],
        "min_global_steps": output.extra_fields["min_global_steps"],
        "max_global_steps": output.extra_fields["max_global_steps"],
    }
    return TqRow(f"{prompt['uid']}_{session}_{index}", fields, tag)
