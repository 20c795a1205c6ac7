"""Names that both the trainer and the check of a config know, without verl."""

from __future__ import annotations

__all__ = ["AGGREGATIONS", "MANAGER", "MODES"]

MODES = {
    "anyharness_sync": "sync",
    "anyharness_colocate_async": "colocate_async",
    "anyharness_separate_async": "separate_async",
}
"""Our trainers, and verl's modes that they are."""

AGGREGATIONS = ("token-mean", "seq-mean-token-sum")
"""verl's ways of adding up a loss that can be turned into a mean over episodes."""

MANAGER = "train.verl.plugin.AnyHarnessManager"
