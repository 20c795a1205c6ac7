"""The world of a drill: its own rows in the Claw services, graded by the records that they keep."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from environments.claw import Claw
from environments.claw.evidence import Evidence
from rollout.environment import World
from rollout.errors import EnvironmentFault
from rollout.held import HeldFolder
from rollout.judge import Judge
from rollout.types import Grade, Task, Trace
from suites.office_drills.drills import DrillTask, Expected

__all__ = ["Drills"]

ANSWER = 0.1
"""Of the score: the final message."""


class Drills(Claw):
    """The Claw world, graded by what a drill expects: passed when all of it is so, and nothing else."""

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        with HeldFolder.temporary("anyharness-drill-") as folder:
            async with super().open(_drill(task).placed(folder), seed) as world:
                yield world

    async def grade(self, task: Task, trace: Trace, judge: Judge | None = None) -> Grade:
        task = _drill(task)
        evidence = Evidence(trace)
        notes: list[str] = []
        share = sum(_done(evidence, one, notes) for one in task.expected) / len(task.expected)
        if not (said := evidence.said(task.answer)):
            notes.append(f"not met: the answer names {task.answer}")
        score = (1 - ANSWER) * share + ANSWER * said
        return Grade(
            score=round(score, 4),
            passed=not notes,
            parts={"completion": round(share, 4), "answer": float(said)},
            notes=tuple(notes),
        )


def _drill(task: Task) -> DrillTask:
    if not isinstance(task, DrillTask):
        raise EnvironmentFault(f"{task.id}: not a drill")
    return task


def _done(evidence: Evidence, expected: Expected, notes: list[str]) -> float:
    """The share of right fields in the one record that should be there; 0 where there are others."""
    records = evidence.audit.get(expected.service, {}).get(expected.records, [])
    where = f"{expected.service}.{expected.records}"
    if len(records) != 1:
        notes.append(f"not met: {where} has one record, not {len(records)}")
        return 0.0
    wrong = [
        name for name, value in expected.fields.items() if not _same(records[0].get(name), value)
    ]
    if wrong:
        notes.append(f"not met: {where} has the right {', '.join(wrong)}")
    return 1 - len(wrong) / len(expected.fields)


def _same(found: Any, wanted: Any) -> bool:
    """Texts may differ in case and in a full stop."""
    if isinstance(found, str) and isinstance(wanted, str):
        return _text(found) == _text(wanted)
    return bool(found == wanted)


def _text(text: str) -> str:
    return text.strip().strip(".").casefold()
