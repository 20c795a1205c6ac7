"""A judge measured against the verifiers' truth, on attempts that a run recorded.

A verifier looks at the world that was left behind, the judge at what an agent's doing looked like. Where
both speak of the same attempt, the verifier is right.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from judges.agreement import Case
from rollout.environment import Environment
from rollout.errors import JudgeError, boundary
from rollout.judge import Judge
from rollout.protocol import Protocol
from rollout.store import EpisodeStore
from rollout.text import one_line
from rollout.types import Episode, Task

__all__ = ["Calibration", "Choice", "choose"]

REASON = 300
"""Characters of the judge's reasoning that are kept."""


@dataclass(frozen=True)
class Choice:
    """The attempts of a run whose truth is known, and why the others are left out."""

    episodes: tuple[Episode, ...]
    left_out: Mapping[str, int]


def choose(store: EpisodeStore, tasks: Mapping[str, Task]) -> Choice:
    """The last try of each attempt that was graded without a judge."""
    chosen: list[Episode] = []
    left_out: Counter[str] = Counter()
    for _, episode in sorted(store.latest().items()):
        task = tasks.get(episode.task_id)
        if not episode.outcome.graded or episode.grade is None:
            left_out[f"ended in {episode.outcome.value}"] += 1
        elif task is None:
            left_out["its task is no longer there"] += 1
        elif task.judged:
            left_out["was itself graded by a judge"] += 1
        else:
            chosen.append(episode)
    return Choice(tuple(chosen), left_out)


@dataclass(frozen=True)
class Calibration:
    """Asks a judge about recorded attempts, by a protocol."""

    environment: Environment
    protocol: Protocol
    judge: Judge
    concurrency: int

    async def cases(
        self, store: EpisodeStore, tasks: Mapping[str, Task], choice: Choice
    ) -> AsyncIterator[Case]:
        """A case for each chosen attempt, in the order in which they are judged."""
        slots = asyncio.Semaphore(self.concurrency)

        async def judged(episode: Episode) -> Case:
            async with slots:
                return await self._case(store, tasks[episode.task_id], episode)

        asked = [asyncio.create_task(judged(episode)) for episode in choice.episodes]
        try:
            for case in asyncio.as_completed(asked):
                yield await case
        finally:
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _case(self, store: EpisodeStore, task: Task, episode: Episode) -> Case:
        assert episode.grade is not None
        # What the judge sees does not show a limit that ended the attempt: the verifier's word counts.
        truth = episode.grade.passed
        try:
            with boundary(JudgeError, "judging"):
                evidence = self.environment.evidence(task, store.trace(episode))
                verdict = await self.protocol.verdict(evidence, self.judge)
        except JudgeError as error:
            return Case(
                episode=episode.id, task=task.id, truth=truth, judge=None, reason=_line(str(error))
            )
        return Case(
            episode=episode.id,
            task=task.id,
            truth=truth,
            judge=verdict.score >= 1.0,
            score=verdict.score,
            reason=_line(verdict.reasoning),
        )


def _line(text: str) -> str:
    return one_line(text, REASON)
