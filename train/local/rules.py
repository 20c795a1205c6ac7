"""The settings of the local trainer's GRPO."""

from __future__ import annotations

from rollout.types import Record
from train.credit import CreditRules
from train.local.loss import Aggregation
from train.samples import Rules

__all__ = ["GrpoRules"]


class GrpoRules(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What decides where training leads. A resumed run must have the same."""

    batch: int = 8
    """Tasks a step."""
    group: int = 8
    """Attempts at each."""
    learning_rate: float = 1e-6
    warmup: int = 0
    """Steps in which the learning rate rises to that."""
    epochs: int = 1
    """Passes over a step's episodes."""
    mini_batches: int = 1
    """Updates in one pass."""
    clip_low: float = 0.2
    clip_high: float = 0.28
    kl: float = 0.0
    """Weight of the divergence from the initial model (k3); 0 keeps no copy of it."""
    aggregation: Aggregation = "episode-mean"
    temperature: float = 1.0
    max_norm: float = 1.0
    """Of the gradient."""
    weight_decay: float = 0.0
    seed: int = 0
    credit: CreditRules = CreditRules()
    samples: Rules = Rules()
