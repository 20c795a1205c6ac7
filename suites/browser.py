"""What the benchmarks of web agents share: the browser, the judging protocol, the export of a run."""

from __future__ import annotations

import argparse
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, cast

from environments.browser_use.environment import BrowserUse
from environments.browser_use.evidence import evidence
from environments.browser_use.task import BrowserTask
from environments.browser_use.verify import broken
from judges.options import add_protocol_arguments, make_protocol, note
from rollout.environment import Environment
from rollout.episode import Setup
from rollout.errors import UsageError, usable
from rollout.manifest import Manifest
from rollout.options import Parser, positive
from rollout.protocol import Evidence
from rollout.recorded import recorded_options
from rollout.store import EpisodeStore
from rollout.suite import Suite
from rollout.types import Image, JsonObject, Task
from suites.command.progress import count
from suites.main import main

__all__ = ["MAX_STEPS", "BrowserSuite", "Write", "numbered", "run"]

MAX_STEPS = 30
"""Of an attempt at a task from the web, as the benchmarks' papers have it."""

Write = Callable[[Path, BrowserTask, Evidence], None]
"""Writes an attempt into a folder, in the form that a benchmark's own evaluator reads."""


class BrowserSuite(Suite):
    """Tasks in a browser: built-in ones on sites of our own, or a benchmark's file."""

    harness = "molmoweb"
    protocol: ClassVar[str]
    """By which the judge is asked, unless the user says otherwise."""

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        self.add_arguments(parser.add_argument_group())
        self.options = parser.parse_args([], argparse.Namespace(data=None))
        self._protocol = make_protocol(self.protocol)
        self._notes: list[str] = []

    def add_arguments(self, parser: argparse._ArgumentGroup) -> None:
        parser.add_argument(
            "--browser",
            default="",
            metavar="WHICH",
            help="path of a Chromium | cdp:URL | browser-use-cloud (default: the Chromium found here)",
        )
        parser.add_argument(
            "--max-steps",
            type=positive(int),
            default=MAX_STEPS,
            metavar="N",
            help=f"model calls of an attempt, with --data (default: {MAX_STEPS})",
        )
        add_protocol_arguments(parser, self.protocol)

    def configure(self, arguments: argparse.Namespace) -> None:
        self.options = arguments
        self._protocol = make_protocol(arguments.protocol, arguments.judge_prompts)

    def environment(self) -> Environment:
        return BrowserUse(browser=self.options.browser, protocol=self._protocol)

    def tasks(self, data: Path | None) -> Sequence[BrowserTask]:
        if data is None:
            return self.built_in()
        tasks, self._notes = self.original(data)
        return tasks

    @abstractmethod
    def built_in(self) -> Sequence[BrowserTask]:
        """The tasks that need no file."""

    @abstractmethod
    def original(self, data: Path) -> tuple[list[BrowserTask], list[str]]:
        """The tasks of the user's copy, and what a reader must know of them. Raises UsageError."""

    @abstractmethod
    def source(self, data: Path) -> JsonObject:
        """Which copy that is, for the manifest."""

    def unfit(self, task: Task, setup: Setup) -> str:
        browser_task = cast(BrowserTask, task)
        return broken(browser_task) if browser_task.verifier else ""

    def notes(self) -> Sequence[str]:
        return (*self._notes, note(self._protocol)) if self._notes else ()

    def fingerprint(self, data: Path | None) -> JsonObject:
        if data is None:
            return {"data": "built-in"}
        chosen = self.options
        prompts = str(chosen.judge_prompts) if chosen.judge_prompts else None
        return {
            **{"data": str(data), "protocol": chosen.protocol, "judge_prompts": prompts},
            **{"max_steps": chosen.max_steps, **self.source(data)},
        }


def run(suite: BrowserSuite, write: Write, argv: Sequence[str] | None = None) -> None:
    """The main function of a web benchmark: `export RUN --out DIR`, or what every suite can do."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] != ["export"]:
        main(suite, arguments)
    try:
        print(export(suite, write, arguments[1:]))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def export(suite: BrowserSuite, write: Write, argv: Sequence[str]) -> str:
    """Write a run's attempts for the benchmark's own evaluator; what was written, in a line."""
    parser = Parser(
        prog=f"python -m suites.{suite.name} export",
        description="Write a run's attempts in the form that the benchmark's own evaluator reads.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    parser.add_argument("--data", type=Path, metavar="PATH", help="the tasks (the run's)")
    suite.add_arguments(parser.add_argument_group(f"of {suite.name}"))
    manifest = Manifest.read(parser.parse_args(argv).run)
    parser.set_defaults(**recorded_options(suite, manifest))
    given = parser.parse_args(argv)
    suite.configure(given)
    tasks = {task.id: task for task in suite.tasks(given.data)}
    return _export(given.run, given.out, tasks, manifest.attempts, write)


def _export(
    run: Path, out: Path, tasks: dict[str, BrowserTask], attempts: int, write: Write
) -> str:
    """One folder for each attempt number where there are several: evaluators want a task once."""
    if out.exists() and any(out.iterdir()):
        raise UsageError(f"--out {out}: not empty; name a new folder")
    written = 0
    with EpisodeStore.read(run) as store:
        for episode in store.latest().values():
            task = tasks.get(episode.task_id)
            if task is None or not episode.calls:
                continue
            folder = out / f"attempt-{episode.attempt}" if attempts > 1 else out
            with usable(out, "name a folder that can be written to"):
                write(folder, task, evidence(task, store.trace(episode)))
            written += 1
    if not written:
        raise UsageError(f"{run}: no attempt to export; are these its tasks (--data)?")
    return f"{count(written, 'attempt')} written to {out}"


def numbered(told: Evidence) -> list[Image | None]:
    """The screenshot that each step ended with; where it has none, the one before it."""
    shown: list[Image | None] = []
    for step in told.steps:
        shown.append(step.screenshot or (shown[-1] if shown else None))
    return shown
