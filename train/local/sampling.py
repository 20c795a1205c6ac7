"""Drawing tokens, with the log-probability that each was drawn with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from train.engine import SamplingParams

__all__ = ["draw"]


def draw(
    logits: Tensor, params: Sequence[SamplingParams], uniform: Sequence[float]
) -> tuple[list[int], list[float]]:
    """A token for each row of logits, by inverting its distribution at a uniform number in [0, 1).

    A row's token depends on its own logits and number alone, whoever else is in the batch. Temperature
    0 takes the likeliest token, with log-probability 0.
    """
    temperature = torch.tensor([p.temperature or 1.0 for p in params]).to(logits)
    logprobs = torch.log_softmax(logits.float() / temperature[:, None], -1)
    for row, one in enumerate(params):
        if one.top_k or one.top_p < 1.0:
            logprobs[row] = _cut(logprobs[row], one)
    cumulated = logprobs.double().exp().cumsum(-1)
    # Scaled by the sum, which rounding keeps from being 1: the last token stays the last.
    target = torch.tensor(uniform, dtype=torch.float64).to(cumulated) * cumulated[:, -1]
    drawn = torch.searchsorted(cumulated, target[:, None], right=True)[:, 0]
    greedy = torch.tensor([p.temperature == 0 for p in params]).to(logits.device)
    ids = torch.where(greedy, logits.argmax(-1), drawn.clamp(max=logits.shape[-1] - 1))
    chosen = logprobs.gather(-1, ids[:, None])[:, 0].masked_fill(greedy, 0.0)
    return ids.tolist(), chosen.tolist()


def _cut(logprobs: Tensor, params: SamplingParams) -> Tensor:
    """The distribution of the likeliest tokens alone: `top_k` of them, then a mass of `top_p`."""
    ordered, order = logprobs.sort(descending=True)
    if params.top_k:
        ordered[params.top_k :] = -torch.inf
    before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
    ordered[before >= params.top_p] = -torch.inf
    return torch.full_like(logprobs, -torch.inf).scatter(0, order, ordered.log_softmax(-1))
