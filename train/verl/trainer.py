"""verl's trainers with credit for episodes: `trainer.v1.trainer_mode=anyharness_sync` and the like.

verl's own advantages know a batch's prompts and sessions, but no steps and no states, and its loss counts
rows or tokens. Here, after verl has done its part, the advantages become those of `train.advantages`,
scaled so that in the loss every episode weighs the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import torch
import transfer_queue
from omegaconf import DictConfig, OmegaConf, open_dict
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.trainer_base import PPOTrainer, register_trainer
from verl.trainer.ppo.v1.trainer_colocate_async import PPOTrainerColocateAsync
from verl.trainer.ppo.v1.trainer_separate_async import PPOTrainerSeparateAsync
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from train.advantages import CreditedRow, token_advantages
from train.credit import Floats, loss_weights
from train.verl.modes import AGGREGATIONS, MODES
from train.verl.rows import CREDIT, credited
from train.verl.settings import Settings

__all__ = ["AnyHarnessColocateAsync", "AnyHarnessSeparateAsync", "AnyHarnessSync", "scales"]


class _Credited(PPOTrainer):  # type: ignore[misc]
    """What is ours in all three modes."""

    def __init__(self, config: DictConfig) -> None:
        self.settings = Settings.read(OmegaConf.to_container(config.anyharness, resolve=True))
        # verl asks for its own modes by name in a dozen places; the class has been chosen by now.
        with open_dict(config):
            config.trainer.v1.trainer_mode = MODES[config.trainer.v1.trainer_mode]
        super().__init__(config)

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        batch = super()._compute_advantage(batch, metrics)
        fields = ["response_mask", "extra_fields"]
        data = transfer_queue.kv_batch_get(
            keys=batch.keys, partition_id=batch.partition_id, select_fields=fields
        )
        masks = [mask.bool().numpy() for mask in data["response_mask"].unbind()]
        mode = self.config.actor_rollout_ref.actor.loss_agg_mode
        advantages = self._advantages(batch, masks, list(data["extra_fields"]), mode)
        nested = torch.nested.as_nested_tensor(
            [torch.as_tensor(values, dtype=torch.float32) for values in advantages],
            layout=torch.jagged,
        )
        fields = TensorDict({"advantages": nested, "returns": nested}, batch_size=len(batch))
        return transfer_queue.kv_batch_put(
            keys=batch.keys, partition_id=batch.partition_id, fields=fields
        )

    def _advantages(
        self, batch: KVBatchMeta, masks: list[Any], extra: list[Any], mode: str
    ) -> list[Floats]:
        """Of each row's tokens; 0 for the rows that verl fills a batch up with, and for lone episodes.

        Our manager drops these, verl's own does not.
        """
        real = _compared(batch)
        rows: list[CreditedRow] = [
            credited(batch.keys[i], len(masks[i]), getattr(extra[i], "data", extra[i]))
            for i in real
        ]
        told: list[Floats] = [np.zeros(len(mask)) for mask in masks]
        if not rows:
            return told
        factors = np.ones(len(rows))
        if self.settings.episode_weights:
            counts = [int(masks[i].sum()) for i in real]
            factors = scales(counts, [row.episode for row in rows], mode, len(batch))
        for i, values, factor in zip(
            real, token_advantages(rows, self.settings.advantage), factors, strict=True
        ):
            told[i] = values * factor * masks[i]
        return told

    def _update_actor(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        """Update in one step where that is asked for: verl takes more, the more rows there are."""
        actor = self.config.actor_rollout_ref.actor
        usual = actor.ppo_mini_batch_size
        if self.settings.one_update:
            # In prompts; verl has filled the batch up to a multiple of its mini-batch.
            actor.ppo_mini_batch_size = len(batch) // self.config.actor_rollout_ref.rollout.n
        try:
            return super()._update_actor(batch, metrics)
        finally:
            actor.ppo_mini_batch_size = usual

    def _compute_metrics(
        self, batch: KVBatchMeta, metrics: dict[str, Any], *a: Any, **k: Any
    ) -> None:
        super()._compute_metrics(batch, metrics, *a, **k)
        if (tally := getattr(self.agent_loop_manager, "tally", None)) is not None:
            metrics |= {f"{CREDIT}/{name}": value for name, value in tally().values().items()}


class _Held(_Credited):
    """Modes in which the engine sleeps while its GPUs train."""

    def on_sample_end(self) -> None:
        """Hold harnesses back before the engine sleeps."""
        if hasattr(self.agent_loop_manager, "hold"):
            self.agent_loop_manager.hold()
        super().on_sample_end()

    def on_step_end(self) -> None:
        """Let them go when it is awake, with the new weights."""
        super().on_step_end()
        if hasattr(self.agent_loop_manager, "release"):
            self.agent_loop_manager.release()


@register_trainer("anyharness_sync")
class AnyHarnessSync(_Held, PPOTrainerSync):  # type: ignore[misc]
    """`sync`: a batch is sampled, then trained on."""


@register_trainer("anyharness_colocate_async")
class AnyHarnessColocateAsync(_Held, PPOTrainerColocateAsync):  # type: ignore[misc]
    """`colocate_async`: episodes go on over weight updates, on the same GPUs."""


@register_trainer("anyharness_separate_async")
class AnyHarnessSeparateAsync(_Credited, PPOTrainerSeparateAsync):  # type: ignore[misc]
    """`separate_async`: sampling and training on GPUs of their own."""


def _compared(batch: KVBatchMeta) -> list[int]:
    """Positions of the rows in groups of two episodes or more."""
    real = [i for i, tag in enumerate(batch.tags) if not tag.get("is_padding", False)]
    sessions = {batch.keys[i].rpartition("_")[0] for i in real}
    members = Counter(session.rpartition("_")[0] for session in sessions)
    return [i for i in real if members[batch.keys[i].rsplit("_", 2)[0]] > 1]


def scales(tokens: list[int], episodes: list[str], mode: str, rows: int) -> Floats:
    """Factors for the advantages of each row, so that verl's loss becomes a mean over episodes.

    The loss is linear in positive factors of advantages, clipping included. `tokens` are the rows'
    trained ones, `rows` the batch's with those that fill it up. Exact where the batch is one mini-batch;
    with more, `token-mean` divides by the tokens of each. Entropy and KL terms are not touched.
    """
    shares = loss_weights(tokens, episodes) / np.maximum(tokens, 1)
    total = {"token-mean": sum(tokens), "seq-mean-token-sum": rows}
    assert set(total) == set(AGGREGATIONS)
    return np.asarray(shares * total[mode])
