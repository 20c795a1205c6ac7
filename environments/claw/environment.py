"""Claw: everyday office work against mock services, in claw-eval's task format."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from environments.claw import rubric, verify
from environments.claw.original import grading
from environments.claw.task import ClawTask
from environments.claw.world import ClawWorld
from rollout.environment import Environment, World
from rollout.errors import EnvironmentFault
from rollout.judge import Judge
from rollout.types import Grade, JsonObject, Task, Trace

__all__ = ["Claw"]


class Claw(Environment):
    """Opens a task's services for one attempt, and grades what becomes of them."""

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        """The world of one attempt; `seed` decides which calls a fault with a `rate` hits."""
        yield ClawWorld(_claw(task), seed)

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
        """The published behaviour that the services follow."""
        return {"environment": "claw", "services": "claw-eval 9365e1a"}


def _claw(task: Task) -> ClawTask:
    if not isinstance(task, ClawTask):
        raise EnvironmentFault(f"{task.id}: not a task of claw services")
    return task
