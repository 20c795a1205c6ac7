"""Any suite under any harness, as a trainer runs it: with a policy of its own, step by step.

A suite is named as on its command line: `claweval`, or with options, `"office_drills --split train"`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rollout.episode import Setup
from rollout.errors import UsageError
from rollout.gateway.upstream import Upstream
from rollout.manifest import Manifest
from rollout.plugins import load
from rollout.runner import Observer, Runner
from rollout.store import EpisodeStore
from rollout.suite import Suite
from rollout.types import Episode, Task, Trace
from suites.command.manifest import complete, describe
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
    manifest: Manifest
    """Of all of that; `describe` has it for a part."""
    held_out: ReadyHarness | None = None
    """The same with the tasks that are evaluated on, and never trained on."""

    def describe(self, tasks: Sequence[Task], n: int, seed: int, model: str = "") -> Manifest:
        """The manifest of n attempts at some of the tasks; `model` names the weights."""
        named = {"model": model} if model else {}
        return msgspec.structs.replace(
            self.manifest,
            tasks={task.id: self.manifest.tasks[task.id] for task in tasks},
            model={**self.manifest.model, **named},
            attempts=n,
            seed=seed,
        )


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

    def ready(self, spec: HarnessSpec, setup: Setup) -> ReadyHarness:
        """The tasks with the harness that `setup` has opened. Raises UsageError when none can be run."""
        tasks = self.tasks(setup)
        manifest = describe(self.suite, self.options, list(tasks.values()), setup)
        return ReadyHarness(spec, setup, tasks, manifest)

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
    harness: ReadyHarness,
    tasks: Sequence[Task],
    n: int,
    folder: Path,
    *,
    concurrency: int,
    seed: int,
    model: str = "",
    observer: Observer | None = None,
) -> Attempts:
    """n episodes of each task in the order of tasks and attempts, whatever ended first.

    `folder` becomes a run like any other; attempts that it holds already are not run again. `model` names
    the weights in its manifest. Raises RunnerStopped.
    """
    manifest = harness.describe(tasks, n, seed, model)
    with open_store(folder, manifest) as store:
        runner = Runner(
            harness.setup,
            store=store,
            concurrency=concurrency,
            seed=seed,
            observer=observer or Observer(),
        )
        groups = {group.task.id: group async for group in runner.groups(tasks, n)}
        played = [
            (episode, store.trace(episode))
            for task in tasks
            for episode in groups[task.id].episodes
        ]
        complete(folder, manifest, played)
        return played


def open_store(folder: Path, manifest: Manifest) -> EpisodeStore:
    """The folder's store, made where there is none, with a manifest."""
    there = (folder / "episodes.jsonl").exists()
    store = EpisodeStore.open(folder) if there else EpisodeStore.create(folder)
    try:
        if not Manifest.exists(folder):
            manifest.write(folder)
    except UsageError:
        store.close()
        raise
    return store
