"""Groups: order, concurrency, retries, resume, early cut-off, and knowing when to stop."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from support.toys import Acting, Fake, Notes, note_task, save_note

from rollout.episode import Setup
from rollout.errors import UsageError
from rollout.gateway.server import Gateway
from rollout.harness import Job
from rollout.runner import Observer, Runner, RunnerStopped, attempt_seed
from rollout.sandboxes.local import Local
from rollout.store import EpisodeStore
from rollout.types import Episode, Outcome, Task


@asynccontextmanager
async def setup(act: Any = save_note) -> AsyncIterator[Setup]:
    async with Gateway(Fake()) as gateway:
        yield Setup(
            environment=Notes(),
            harness=Acting(act),
            gateway=gateway,
            sandboxes=Local(),
            surface="native",
        )


async def test_groups_hold_n_attempts_each_in_order() -> None:
    async with setup() as ready:
        runner = Runner(ready, concurrency=3)
        groups = [group async for group in runner.groups([note_task(x) for x in "abc"], 2)]
    assert sorted(group.task.id for group in groups) == ["a", "b", "c"]
    for group in groups:
        assert [episode.attempt for episode in group.episodes] == [0, 1]
        assert all(episode.outcome is Outcome.PASSED for episode in group.episodes)


async def test_runners_can_share_their_slots() -> None:
    under_way, most = 0, 0

    async def act(job: Job) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        answer = await save_note(job)
        under_way -= 1
        return answer

    async def drain(runner: Runner) -> int:
        return len([group async for group in runner.groups([note_task()], 2)])

    async with setup(act) as ready:
        slots = asyncio.Semaphore(1)
        runners = [Runner(ready, concurrency=4, slots=slots) for _ in range(2)]
        assert await asyncio.gather(*map(drain, runners)) == [1, 1]
    assert most == 1


async def test_concurrency_is_bounded_and_used() -> None:
    under_way, most, gate = 0, 0, asyncio.Event()

    async def count(job: Job) -> str:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if most == 4:
            gate.set()
        await gate.wait()
        await save_note(job)
        under_way -= 1
        return ""

    async with setup(count) as ready:
        runner = Runner(ready, concurrency=4)
        groups = [group async for group in runner.groups([note_task(x) for x in "abcdef"], 2)]
    assert most == 4
    assert len(groups) == 6


async def test_an_endless_source_of_tasks_is_read_only_as_needed() -> None:
    taken = 0

    def endless() -> Iterator[Task]:
        nonlocal taken
        while True:
            taken += 1
            yield note_task(f"t{taken}")

    async with setup() as ready:
        groups = Runner(ready, concurrency=2).groups(endless(), 2)
        first = [await anext(groups) for _ in range(3)]
        await groups.aclose()  # type: ignore[attr-defined]
    assert len({group.task.id for group in first}) == 3
    assert taken <= 3 + 4


class Failing:
    """Fails the first `times` attempts at each task, then saves the note."""

    def __init__(self, times: int) -> None:
        self.times, self.seen = times, dict[str, int]()

    async def __call__(self, job: Job) -> str:
        seen = self.seen[job.prompt] = self.seen.get(job.prompt, 0) + 1
        if seen <= self.times:
            raise OSError("the disk hiccups")
        return await save_note(job)


async def test_an_infrastructure_error_is_tried_again_and_both_tries_are_kept(
    tmp_path: Path,
) -> None:
    async with setup(Failing(1)) as ready:
        with EpisodeStore.create(tmp_path / "run") as store:
            runner = Runner(ready, store=store, backoff=0.001)
            [group] = [group async for group in runner.groups([note_task()], 1)]
            stored = store.episodes()
    assert [episode.outcome for episode in group.episodes] == [Outcome.PASSED]
    assert [(e.id, e.outcome) for e in stored] == [
        ("milk#0", Outcome.INFRA_ERROR),
        ("milk#0.1", Outcome.PASSED),
    ]
    assert stored[0].seed == stored[1].seed


async def test_retries_are_bounded_and_the_error_stays_an_error() -> None:
    async with setup(Failing(99)) as ready:
        runner = Runner(ready, retries=2, backoff=0.001)
        [group] = [group async for group in runner.groups([note_task()], 1)]
    assert group.episodes[0].outcome is Outcome.INFRA_ERROR
    assert group.episodes[0].retry == 2


async def test_resume_runs_only_what_is_missing_or_ungraded(tmp_path: Path) -> None:
    ran: list[str] = []

    class Note(Observer):
        def started(self, task: Task, attempt: int) -> None:
            ran.append(f"{task.id}#{attempt}")

    tasks = [note_task("a"), note_task("b")]
    async with setup(Failing(1)) as ready:
        with EpisodeStore.create(tmp_path / "run") as store:
            runner = Runner(ready, store=store, retries=0, concurrency=1, observer=Note())
            async for _ in runner.groups(tasks[:1], 2):
                pass
        assert ran == ["a#0", "a#1"]
        ran.clear()
        with EpisodeStore.open(tmp_path / "run") as store:
            runner = Runner(ready, store=store, retries=1, backoff=0.001, observer=Note())
            groups = [group async for group in runner.groups(tasks, 2)]
            latest = store.latest()
    assert sorted(set(ran)) == ["a#0", "b#0", "b#1"]
    assert {episode.outcome for group in groups for episode in group.episodes} == {Outcome.PASSED}
    assert len(latest) == 4
    assert latest["a", 0].id == "a#0.1"


async def test_a_missing_verdict_is_asked_for_again_without_running(tmp_path: Path) -> None:
    async with setup() as ready:
        with EpisodeStore.create(tmp_path / "run") as store:
            judged = replace(ready, environment=Notes("judge"))
            async for _ in Runner(judged, store=store).groups([note_task()], 1):
                pass
            assert store.latest()["milk", 0].outcome is Outcome.JUDGE_ERROR
        with EpisodeStore.open(tmp_path / "run") as store:
            calls: list[str] = []
            observer = Observer()
            observer.started = lambda task, attempt: calls.append(task.id)  # type: ignore[method-assign]
            runner = Runner(ready, store=store, observer=observer)
            [group] = [group async for group in runner.groups([note_task()], 1)]
            assert store.latest()["milk", 0].outcome is Outcome.PASSED
    assert group.episodes[0].outcome is Outcome.PASSED
    assert not calls


async def test_a_group_can_be_cut_off_early() -> None:
    release = asyncio.Event()
    cancelled: list[str] = []

    async def first_only(job: Job) -> str:
        if not release.is_set():
            release.set()
            return await save_note(job)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(job.prompt)
            raise
        return ""

    async with setup(first_only) as ready:
        runner = Runner(ready, concurrency=3)
        groups = runner.groups([note_task()], 3, enough=lambda episodes: len(episodes) >= 1)
        [group] = [group async for group in groups]
    assert len(group.episodes) == 1
    assert len(cancelled) == 2


async def test_attempts_that_fail_together_are_told_once() -> None:
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what["message"]))

    class Full:
        barrier = asyncio.Barrier(6)

        def latest(self) -> dict[tuple[str, int], Episode]:
            return {}

        async def append(self, *_: object) -> None:
            await self.barrier.wait()
            raise UsageError("no space left")

    async with setup() as ready:
        runner = Runner(ready, store=cast(EpisodeStore, Full()), concurrency=8)
        with pytest.raises(UsageError, match="no space left"):
            async for _ in runner.groups([note_task(x) for x in "ab"], 3):
                pass
    gc.collect()
    assert told == []


async def test_a_dead_infrastructure_stops_the_run() -> None:
    async with setup(Failing(99)) as ready:
        runner = Runner(ready, retries=5, backoff=0.001, give_up_after=4, concurrency=1)
        with pytest.raises(RunnerStopped, match=r"4 infrastructure errors in a row.*hiccups"):
            async for _ in runner.groups([note_task(x) for x in "abc"], 1):
                pass


def test_seeds_depend_on_run_task_and_attempt_only() -> None:
    seeds = {attempt_seed(s, t, a) for s in (0, 1) for t in ("a", "b") for a in (0, 1)}
    assert len(seeds) == 8
    assert attempt_seed(0, "a", 0) == attempt_seed(0, "a", 0)
