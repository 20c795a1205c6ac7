"""Any suite under any harness, as a trainer runs it: with a policy of its own, step by step.

A suite is named as on its command line: `claweval`, or with options, `"office_drills --split train"`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from rollout.episode import Setup
from rollout.errors import UsageError
from rollout.gateway.upstream import Upstream
from rollout.plugins import load
from rollout.runner import Observer, Runner
from rollout.store import EpisodeStore
from rollout.suite import Suite
from rollout.types import Episode, Task, Trace
from suites.command.options import Forced, Options, parse, select
from suites.command.setup import fitted, open_setup
from train.mix import HarnessSpec

__all__ = ["Attempts", "ReadyHarness", "Source", "attempts", "open_store", "words"]


ELSEWHERE = {"--model", "--base-url", "--attempts", "--concurrency", "--seed", "--out", "--resume"}
"""Options of a suite's own command line that a trainer decides."""


@dataclass(frozen=True)
class ReadyHarness:
    """A harness, ready to run, with the tasks that it can do."""

    spec: HarnessSpec
    setup: Setup
    tasks: dict[str, Task]
    """By id, in the suite's order."""
    held_out: Sequence[Task] = ()
    """Tasks that are evaluated on, and never trained on."""


@dataclass(frozen=True)
class Source:
    """Tasks, and how episodes of them are run."""

    suite: Suite
    options: Options

    @classmethod
    def parse(cls, spec: str, more: str = "", *, forced: Forced | None = None) -> Source:
        """From `"NAME --option ..."` and `more` options; `forced` wins over both. Raises UsageError."""
        name, *own = words(spec) or [""]
        given = {word.partition("=")[0] for word in (*own, *words(more))}
        theirs = ELSEWHERE | {f"--{key.replace('_', '-')}" for key in forced or ()}
        for option in sorted(given & theirs):
            raise UsageError(f"{spec!r}: {option} is set by the trainer, not with the suite")
        suite = load("suites", name, Suite)()
        return cls(suite, parse(suite, [*own, *words(more)], forced))

    def tasks(self, setup: Setup) -> dict[str, Task]:
        """Those that can be run, by id. Raises UsageError when none can."""
        chosen = select(self.suite.tasks(self.options.data), self.options.tasks)
        tasks = [task for task in fitted(self.suite, chosen, setup) if not task.skip]
        if not tasks:
            raise UsageError(f"--suite {self.suite.name}: none of its tasks can be run in this way")
        return {task.id: task for task in tasks}

    def open(self, policy: Upstream | None = None) -> AbstractAsyncContextManager[Setup]:
        """The environment, harness and gateway; `policy` in place of the model of the options."""
        return open_setup(self.suite, self.options, policy=policy)


def words(line: str) -> list[str]:
    """A command line as a list of words. Raises UsageError for a quotation that does not end."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{line!r}: {error}") from error


Attempts = list[tuple[Episode, Trace]]


async def attempts(
    setup: Setup,
    tasks: Sequence[Task],
    n: int,
    folder: Path,
    *,
    concurrency: int,
    seed: int,
    observer: Observer | None = None,
) -> Attempts:
    """n episodes of each task in the order of tasks and attempts, whatever ended first.

    They are kept in the episode store `folder`; attempts that it holds already are not run again. Raises
    RunnerStopped.
    """
    with open_store(folder) as store:
        runner = Runner(
            setup,
            store=store,
            concurrency=concurrency,
            seed=seed,
            observer=observer or Observer(),
        )
        groups = {group.task.id: group async for group in runner.groups(tasks, n)}
        return [
            (episode, store.trace(episode))
            for task in tasks
            for episode in groups[task.id].episodes
        ]


def open_store(folder: Path) -> EpisodeStore:
    """The folder's store, made where there is none."""
    if (folder / "episodes.jsonl").exists():
        return EpisodeStore.open(folder)
    return EpisodeStore.create(folder)
