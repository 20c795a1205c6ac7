"""The losses of the local trainer, as verl defines them (verl/trainer/ppo/core_algos.py, 0.9.1).

Tokens lie flat, row after row, without padding; a token's weight says how much it counts. The tests hold
these against verl's own functions to 1e-6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from train.credit import Floats, loss_weights

__all__ = ["Aggregation", "Clip", "PolicyLoss", "policy_loss", "reverse_kl", "token_weights"]

Aggregation: TypeAlias = Literal[
    "episode-mean", "token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean"
]
"""`episode-mean`: every episode weighs the same, and so does each token in it. The others are verl's
`agg_loss`, which knows rows and tokens only."""

SAFE = 20.0
"""Log-ratios are cut to this, as in verl: exp() of more is useless, and may be infinite."""


@dataclass(frozen=True)
class Clip:
    """Limits of the ratio between new and old probability of a token."""

    low: float = 0.2
    high: float = 0.28
    """Above `low`: clip-higher (DAPO, arXiv 2503.14476), so that unlikely tokens can rise."""
    dual: float = 3.0
    """Of losses with a negative advantage (dual clip, arXiv 1912.09729)."""


@dataclass(frozen=True)
class PolicyLoss:
    """Per token; `clipped` marks those whose gradient the clip cuts off."""

    loss: Tensor
    clipped: Tensor
    old_kl: Tensor
    """log(old / new): its mean estimates KL(old || new)."""


def policy_loss(new: Tensor, old: Tensor, advantages: Tensor, clip: Clip) -> PolicyLoss:
    """PPO's clipped loss of each token, from log-probabilities: verl's `compute_policy_loss_vanilla`."""
    change = (new - old).clamp(-SAFE, SAFE)
    ratio = change.exp()
    plain = -advantages * ratio
    limited = -advantages * ratio.clamp(1 - clip.low, 1 + clip.high)
    worse = torch.maximum(plain, limited)
    bounded = torch.minimum(worse, -advantages * clip.dual)
    loss = torch.where(advantages < 0, bounded, worse)
    return PolicyLoss(loss, (limited > plain).float(), -change)


def reverse_kl(new: Tensor, reference: Tensor) -> Tensor:
    """Schulman's k3 estimate of KL(new || reference) of each token: verl's `low_var_kl`."""
    change = (reference - new).clamp(-SAFE, SAFE)
    return (change.exp() - change - 1).clamp(-10.0, 10.0)


def token_weights(
    tokens: Sequence[int], episodes: Sequence[str], aggregation: Aggregation
) -> Floats:
    """Weight of every token of each row: the batch's loss is the weighted sum of its tokens' losses.

    `tokens` are the rows' trained tokens. Rows without any count for nothing.
    """
    counts = np.asarray(tokens, np.float64)
    rows = max(1, int(np.count_nonzero(counts)))
    each = np.maximum(counts, 1)
    if aggregation == "episode-mean":
        return np.asarray(loss_weights(tokens, episodes) / each)
    if aggregation == "token-mean":
        return np.full_like(counts, 1 / max(1.0, counts.sum()))
    if aggregation == "token-sum":
        return np.ones_like(counts)
    if aggregation == "seq-mean-token-sum":
        return np.full_like(counts, 1 / rows)
    return np.asarray(1 / (rows * each))
