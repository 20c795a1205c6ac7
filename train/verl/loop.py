"""The smallest way in: one episode as one of verl's agent loops, `agent_name: anyharness`.

For verl's own manager and trainers. It sees no groups: unclean episodes give no rows (`[]`, which is how
verl is told to drop one), and no group is dropped for being small.
"""

from __future__ import annotations

import asyncio
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register

from rollout.episode import run_episode
from rollout.runner import attempt_seed
from train.credit import Credit, reward_of
from train.samples import build_samples
from train.verl.rollouts import HarnessPool, Sampling
from train.verl.rows import outputs

__all__ = ["AnyHarnessLoop"]

_POOLS: dict[int, HarnessPool] = {}
"""By client: verl makes a loop for every rollout, and one client for a process, which ends them."""


@register("anyharness")
class AnyHarnessLoop(AgentLoopBase):  # type: ignore[misc]
    """Runs one attempt at a task."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """The episode's rows. `row` is the dataset's; sampling is as the config says."""
        pool = self._pool()
        step = int(row.get("global_steps", 0))
        spec = pool.settings.drawn(row, step)
        harness = await pool.open(row["suite"], spec, Sampling.read(sampling_params))
        task, attempt = harness.tasks[row["task"]], int(row["session_id"])
        seed = attempt_seed(step, task.id, attempt)
        episode, trace = await run_episode(harness.setup, task, attempt, seed=seed)
        reward = reward_of(episode, pool.settings.credit)
        if reward is None:
            return []
        rules = pool.settings.samples(pool.window)
        samples, _ = await asyncio.to_thread(build_samples, episode, trace, rules)
        credit = Credit(reward=reward, advantage=0.0)
        anchors = pool.settings.gigpo > 0
        return outputs(episode, trace, samples, credit, version=max(step - 1, 0), anchors=anchors)

    def _pool(self) -> HarnessPool:
        key = id(self.server_manager)
        if key not in _POOLS:
            _POOLS[key] = HarnessPool(
                self.config, self.server_manager, self.tokenizer, self.processor
            )
        return _POOLS[key]
