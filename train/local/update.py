"""From a step's rows to new weights: mini-batches, losses, gradients, optimizer steps."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rollout.types import JsonObject
from train.local.batch import collate, logprobs, micro_batches
from train.local.loss import Clip, policy_loss, reverse_kl, token_weights
from train.local.rules import GrpoRules
from train.rows import RlRow

__all__ = ["Updater"]

Sums = Counter[str]
"""What is added up over tokens and updates; floats."""


@dataclass
class Updater:
    """Updates the weights of a model in place."""

    model: Any
    """transformers' causal language model."""
    optimizer: torch.optim.Optimizer
    rules: GrpoRules
    reference: Any = None
    """The initial model, where `rules.kl` wants it."""

    def update(self, rows: Sequence[RlRow], step: int) -> JsonObject:
        """All updates of step number `step`; their metrics.

        Rows of episodes that teach nothing count in the weights of the others, but are not computed.
        """
        rules, totals = self.rules, Sums()
        for group in self.optimizer.param_groups:
            group["lr"] = rules.learning_rate * min(1.0, (step + 1) / max(1, rules.warmup))
        dice = random.Random(f"{rules.seed}/{step}/update")
        for _ in range(rules.epochs):
            for part in _mini_batches(rows, rules.mini_batches, dice):
                self._add_gradients(part, totals)
                self._apply_gradients(totals)
        return _metrics(totals) | {"learning_rate": self.optimizer.param_groups[0]["lr"]}

    def _add_gradients(self, rows: Sequence[RlRow], totals: Sums) -> None:
        """Those of one mini-batch, a few rows at a time."""
        counts = [int(np.count_nonzero(row.response_mask)) for row in rows]
        episodes = [row.episode_id for row in rows]
        weights = token_weights(counts, episodes, self.rules.aggregation)
        live = [i for i, row in enumerate(rows) if counts[i] and (row.advantage or self.rules.kl)]
        for chosen in micro_batches([rows[i] for i in live]):
            part = [live[i] for i in chosen]
            loss, sums = self._loss([rows[i] for i in part], [float(weights[i]) for i in part])
            loss.backward()
            totals.update(sums)

    def _loss(
        self, rows: Sequence[RlRow], weights: Sequence[float]
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """The weighted loss of some rows, and sums over their trained tokens."""
        rules = self.rules
        batch = collate(rows, self.model.device)
        new, entropy = logprobs(self.model, batch, rules.temperature, entropy=True)
        old = torch.cat([_sampled_logprobs(row) for row in rows]).to(new)
        each = torch.tensor([int(np.count_nonzero(row.response_mask)) for row in rows])
        advantages = torch.tensor([row.advantage for row in rows]).repeat_interleave(each).to(new)
        told = policy_loss(new, old, advantages, Clip(rules.clip_low, rules.clip_high))
        loss, sums = told.loss, {}
        if self.reference is not None:
            with torch.no_grad():
                initial, _ = logprobs(self.reference, batch, rules.temperature)
            divergence = reverse_kl(new, initial)
            loss = loss + rules.kl * divergence
            sums["kl"] = float(divergence.detach().sum())
        total = (torch.tensor(weights).repeat_interleave(each).to(new) * loss).sum()
        return total, sums | {
            "loss": float(total.detach()),
            "entropy": float(entropy.detach().sum()),
            "clipped": float(told.clipped.sum()),
            "old_kl": float(told.old_kl.detach().sum()),
            "tokens": float(len(new)),
        }

    def _apply_gradients(self, totals: Sums) -> None:
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.rules.max_norm)
        if torch.isfinite(norm):
            totals.update({"norm": float(norm), "updates": 1})
            self.optimizer.step()
        else:  # as verl does: one such update and all weights would be NaN for good
            totals.update({"skipped": 1})
        self.optimizer.zero_grad()


def _metrics(totals: Sums) -> JsonObject:
    tokens, updates = max(1.0, totals["tokens"]), max(1.0, totals["updates"])
    return {
        "loss": totals["loss"] / updates,
        "gradient_norm": totals["norm"] / updates,
        "updates/skipped": totals["skipped"],
        "entropy": totals["entropy"] / tokens,
        "clip_share": totals["clipped"] / tokens,
        "kl/old": totals["old_kl"] / tokens,
        "kl/initial": totals["kl"] / tokens,
    }


def _mini_batches(rows: Sequence[RlRow], count: int, dice: random.Random) -> list[Sequence[RlRow]]:
    """Parts with whole episodes, drawn anew each time."""
    if count == 1:
        return [rows]
    names = list(dict.fromkeys(row.episode_id for row in rows))
    dice.shuffle(names)
    lots = {name: n % count for n, name in enumerate(names)}
    parts = [[row for row in rows if lots[row.episode_id] == n] for n in range(count)]
    return [part for part in parts if part]


def _sampled_logprobs(row: RlRow) -> torch.Tensor:
    assert row.logprobs is not None
    return torch.as_tensor(np.array(row.logprobs)[np.asarray(row.response_mask, bool)])
