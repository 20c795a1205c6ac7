"""Claw: everyday office work against mock services, in claw-eval's task format."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from environments.claw import rubric, verify
from environments.claw.backend import Backend
from environments.claw.original import grading
from environments.claw.servers import ServerPool
from environments.claw.task import ClawTask
from environments.claw.user import SimulatedUser
from environments.claw.world import ClawWorld
from rollout.environment import Environment, World
from rollout.errors import EnvironmentFault
from rollout.gateway.upstream import Upstream
from rollout.judge import Judge
from rollout.types import Grade, JsonObject, Task, Trace

__all__ = ["Claw"]


class Claw(Environment):
    """Opens a task's services for one attempt, and grades what becomes of them."""

    def __init__(
        self,
        servers: ServerPool | None = None,
        *,
        error_rate: float = 0.0,
        user: Upstream | None = None,
    ) -> None:
        """`servers` are claw-eval's own, used in place of ours; `user` plays the simulated user.

        `error_rate` is the probability that a call of any tool fails, as claw-eval's ERROR_RATE.
        """
        self._servers = servers
        self._error_rate = error_rate
        self._user = user

    async def prepare(self) -> None:
        """Raises UsageError when the original servers can't run, or the user's model is not there."""
        if self._servers is not None:
            await self._servers.check()
        if self._user is not None:
            await self._user.check()

    async def close(self) -> None:
        if self._servers is not None:
            await self._servers.close()
        if self._user is not None:
            await self._user.close()

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        """The world of one attempt; `seed` decides which calls a fault with a `rate` hits."""
        claw = _claw(task)
        user = None
        if claw.user and self._user:
            user = SimulatedUser(claw.user, self._user, claw, seed, claw.checkout)
        async with self._backends(claw) as backends:
            yield ClawWorld(claw, seed, backends=backends, error_rate=self._error_rate, user=user)

    @asynccontextmanager
    async def _backends(self, task: ClawTask) -> AsyncIterator[Mapping[str, Backend]]:
        """The original servers of a task. A recording of the web is always replayed by our own."""
        if self._servers is None:
            yield {}
            return
        served = [spec for spec in task.services if not spec.replayed]
        async with self._servers.lease(served) as backends:
            yield backends

    async def grade(self, task: Task, trace: Trace, judge: Judge | None = None) -> Grade:
        """By the task's verify.py, else by claw-eval's own grader.py, else by a judge with its rubric.

        Raises EnvironmentFault when verify.py fails or there is nothing to grade with, JudgeError when
        grader.py or the judge fails.
        """
        claw = _claw(task)
        if claw.verify:
            return verify.grade(claw, trace)
        if claw.grader:
            return await grading.grade(claw, trace, judge)
        if not claw.rubric:
            raise EnvironmentFault(f"{claw.folder}: nothing to grade with: no verify.py, no rubric")
        return await rubric.grade(claw, trace, judge)

    def fingerprint(self) -> JsonObject:
        """Whose services, how often they fail, and who plays the user."""
        return {
            "environment": "claw",
            "services": "claw-eval's own" if self._servers else "after claw-eval 9365e1a",
            "error_rate": self._error_rate,
            "user": self._user.fingerprint() if self._user else {},
        }


def _claw(task: Task) -> ClawTask:
    if not isinstance(task, ClawTask):
        raise EnvironmentFault(f"{task.id}: not a task of claw services")
    return task
