"""Many episodes: groups of attempts, run concurrently, retried, resumed and stored.

    runner = Runner(setup, store=store, concurrency=8)
    async for group in runner.groups(tasks, n=3):
        ...

Evaluation drains the stream; a trainer takes groups from it as they come and stops when it has enough.
Groups arrive in order of completion. Nothing new is started while the consumer is busy and every slot
is taken, so an endless iterator of tasks is fine.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from rollout.episode import Setup, run_episode
from rollout.errors import RolloutError
from rollout.grading import grade_again
from rollout.store import EpisodeStore
from rollout.types import Episode, Group, Outcome, Task, Trace

__all__ = ["Observer", "Runner", "RunnerStopped", "attempt_seed"]

MAX_BACKOFF = 30.0
"""Seconds between tries of an attempt that the infrastructure failed, at most."""


class RunnerStopped(RolloutError):
    """Too many infrastructure errors in a row: going on would only add more. The run can be resumed."""


class Observer:
    """Follows a run, for a progress display for instance. Does nothing by default."""

    def started(self, task: Task, attempt: int) -> None:
        """An attempt begins."""

    def finished(self, episode: Episode) -> None:
        """An episode was stored; an infrastructure error may be followed by another try."""


@dataclass
class Runner:
    """Runs attempts of tasks under one setup."""

    setup: Setup
    store: EpisodeStore | None = None
    concurrency: int = 4
    """Attempts under way at once."""
    retries: int = 2
    """How often an attempt is run again after an infrastructure error."""
    backoff: float = 1.0
    """Seconds before the first such try; doubles each time."""
    give_up_after: int = 12
    """Infrastructure errors in a row, over all attempts, after which the run is stopped."""
    seed: int = 0
    observer: Observer = field(default_factory=Observer)
    slots: asyncio.Semaphore | None = None
    """Limits attempts together with other runners that share it. `concurrency` is not looked at then."""
    _errors_in_a_row: int = field(default=0, init=False)

    async def groups(
        self,
        tasks: Iterable[Task],
        n: int,
        *,
        enough: Callable[[Sequence[Episode]], bool] | None = None,
    ) -> AsyncIterator[Group]:
        """Attempt each task n times; yield each task's group when it is complete.

        `enough` looks at a group's episodes after each that ends; when it says so, the attempts still
        under way are abandoned and the group is yielded as it is. Attempts that the store already
        holds are not run again. Raises RunnerStopped when the infrastructure is gone.
        """
        slots = self.slots or asyncio.Semaphore(self.concurrency)
        stored = self.store.latest() if self.store else {}
        source = iter(tasks)
        pending: set[asyncio.Task[Group]] = set()
        finished: set[asyncio.Task[Group]] = set()
        ahead = -(-self.concurrency // n) + 1
        try:
            while True:
                for task in _take(source, ahead - len(pending)):
                    done = [stored[task.id, i] for i in range(n) if (task.id, i) in stored]
                    group = self._group(task, n, done, slots, enough)
                    pending.add(asyncio.create_task(group))
                if not pending:
                    return
                finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for group_task in finished:
                    yield group_task.result()
        finally:
            await _cancel(pending | finished)

    async def _group(
        self,
        task: Task,
        n: int,
        stored: Sequence[Episode],
        slots: asyncio.Semaphore,
        enough: Callable[[Sequence[Episode]], bool] | None,
    ) -> Group:
        earlier = {episode.attempt: episode for episode in stored}
        under_way = {
            asyncio.create_task(self._attempt(task, i, earlier.get(i), slots)) for i in range(n)
        }
        episodes: list[Episode] = []
        finished: set[asyncio.Task[Episode]] = set()
        try:
            while under_way:
                finished, under_way = await asyncio.wait(
                    under_way, return_when=asyncio.FIRST_COMPLETED
                )
                episodes += [attempt.result() for attempt in finished]
                if enough is not None and enough(episodes):
                    break
        finally:
            await _cancel(under_way | finished)
        return Group(task=task, episodes=tuple(sorted(episodes, key=lambda e: e.attempt)))

    async def _attempt(
        self, task: Task, attempt: int, earlier: Episode | None, slots: asyncio.Semaphore
    ) -> Episode:
        """One attempt to its end: resumed, graded again, or run until it is not an infra error."""
        if earlier is not None and earlier.outcome is Outcome.JUDGE_ERROR:
            return await self._grade_again(task, earlier)
        if earlier is not None and earlier.outcome is not Outcome.INFRA_ERROR:
            return earlier
        first = earlier.retry + 1 if earlier is not None else 0
        for retry in range(first, first + self.retries + 1):
            if retry > first:
                await asyncio.sleep(min(MAX_BACKOFF, self.backoff * 2 ** (retry - first - 1)))
            async with slots:
                self.observer.started(task, attempt)
                episode, trace = await run_episode(
                    self.setup,
                    task,
                    attempt,
                    retry=retry,
                    seed=attempt_seed(self.seed, task.id, attempt),
                )
                await self._keep(episode, trace)
            self._watch(episode)
            if episode.outcome is not Outcome.INFRA_ERROR:
                break
        return episode

    async def _grade_again(self, task: Task, earlier: Episode) -> Episode:
        """Grade a recorded attempt whose grader failed, and store the result as another try."""
        assert self.store is not None
        trace = self.store.trace(earlier)
        graded = await grade_again(self.setup.environment, task, earlier, trace, self.setup.judge)
        retry = earlier.retry + 1
        episode = msgspec.structs.replace(
            graded, id=f"{task.id}#{earlier.attempt}.{retry}", retry=retry
        )
        await self._keep(episode, trace)
        return episode

    async def _keep(self, episode: Episode, trace: Trace) -> None:
        if self.store is not None:
            await self.store.append(episode, trace)
        self.observer.finished(episode)

    def _watch(self, episode: Episode) -> None:
        if episode.outcome is not Outcome.INFRA_ERROR:
            self._errors_in_a_row = 0
            return
        self._errors_in_a_row += 1
        if self._errors_in_a_row >= self.give_up_after:
            raise RunnerStopped(
                f"{self._errors_in_a_row} infrastructure errors in a row, the last one: "
                f"{episode.cause}: {episode.reason}"
            )


def attempt_seed(seed: int, task_id: str, attempt: int) -> int:
    """The seed of one attempt: the same for every retry and resume, different for every attempt."""
    digest = hashlib.sha256(f"{seed}/{task_id}/{attempt}".encode()).digest()
    return int.from_bytes(digest[:6], "big")


def _take(source: Iterator[Task], count: int) -> Iterator[Task]:
    for _ in range(count):
        try:
            yield next(source)
        except StopIteration:
            return


async def _cancel(tasks: Iterable[asyncio.Task[object]]) -> None:
    """Cancel and wait, so that sandboxes are gone before the caller goes on.

    Of what has ended already the exception is taken: only the first one that failed is raised.
    """
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
