"""A suite that even random weights score differently in: the answer's share of small letters."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from rollout.environment import Environment, Surface, World
from rollout.judge import Judge
from rollout.suite import Suite
from rollout.types import Grade, Task, Trace


class Paper(World):
    def __init__(self, task: Task) -> None:
        self.surface = Surface(prompt=task.prompt)


class Desk(Environment):
    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        yield Paper(task)

    async def grade(self, task: Task, trace: Trace, judge: Judge | None = None) -> Grade:
        small = sum(letter.islower() for letter in trace.answer)
        score = small / max(1, len(trace.answer))
        return Grade(score=score, passed=score > 0.5)


class Letters(Suite):
    name = "letters"
    title = "Write small letters"

    def environment(self) -> Environment:
        return Desk()

    def tasks(self, data: Path | None) -> Sequence[Task]:
        return [Task(id=f"write-{n}", prompt=f"Write, number {n}.") for n in range(5)]
