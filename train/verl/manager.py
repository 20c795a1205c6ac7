"""What verl calls for rollouts: `actor_rollout_ref.rollout.agent.agent_loop_manager_class`."""

from __future__ import annotations

from typing import Any, Self

import ray
from omegaconf import DictConfig
from tensordict import TensorDict

from train.tally import Tally

__all__ = ["AnyHarnessManager"]


class AnyHarnessManager:
    """Hands prompts to `rollout.agent.num_workers` workers (verl/trainer/main_ppo.py, TaskRunnerV1)."""

    def __init__(self, workers: list[Any]) -> None:
        self._workers = workers
        self._next = 0

    @classmethod
    def create(
        cls,
        *,
        config: DictConfig,
        llm_client: Any,
        teacher_client: Any = None,
        reward_loop_worker_handles: Any = None,
    ) -> Self:
        """Start the workers, spread over the nodes: episodes run where they are."""
        from train.verl.actor import RolloutActor  # not at the top: see there

        actor = ray.remote(RolloutActor).options(scheduling_strategy="SPREAD", num_cpus=0)
        arguments = (config, llm_client, teacher_client, reward_loop_worker_handles)
        count = config.actor_rollout_ref.rollout.agent.num_workers
        return cls([actor.remote(*arguments) for _ in range(count)])

    def generate_sequences(self, prompts: TensorDict) -> None:
        """Start on the prompts without waiting for them. Raises what stopped a worker for good."""
        parts: list[list[int]] = [[] for _ in self._workers]
        for row in range(len(prompts)):
            parts[(self._next + row) % len(parts)].append(row)
        self._next += len(prompts)  # in the async modes prompts come one by one
        work = [
            worker.generate_sequences.remote(prompts[rows])
            for worker, rows in zip(self._workers, parts, strict=True)
            if rows
        ]
        ray.get(work)

    def hold(self) -> None:
        """No model call goes out until `release`, and no attempt's clock runs."""
        self._all("hold")

    def release(self) -> None:
        """The engine is awake again."""
        self._all("release")

    def drain(self) -> None:
        """Wait until nothing is under way."""
        self._all("drain")

    def tally(self) -> Tally:
        """What became of episodes and groups since the last time."""
        told = Tally()
        for one in self._all("tally"):
            told.merge(one)
        return told

    def close(self) -> None:
        """End the workers and all that they started."""
        self._all("close")
        for worker in self._workers:
            ray.kill(worker)

    def _all(self, method: str) -> list[Any]:
        told: list[Any] = ray.get([getattr(worker, method).remote() for worker in self._workers])
        return told
