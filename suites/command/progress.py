"""What the user watches while a run goes on: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining
from rich.text import Text

from rollout.runner import Observer
from rollout.types import Episode, Outcome, Task
from suites.command.screen import shown

__all__ = ["Lines", "LiveDisplay", "Silent", "count", "describe", "display"]

STYLES = {
    Outcome.PASSED: "green",
    Outcome.FAILED: "red",
    Outcome.BLOCKED: "magenta",
    Outcome.INFRA_ERROR: "yellow",
    Outcome.JUDGE_ERROR: "yellow",
    Outcome.SKIPPED: "dim",
}


class Silent(Observer):
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to put away."""


class Lines(Silent):
    """One line per finished episode: for logs and pipes."""

    def __init__(self, console: Console, total: int, done: Mapping[Outcome, int]) -> None:
        self._console = console
        self._total = total
        self._done = sum(done.values())

    def finished(self, episode: Episode) -> None:
        self._done += episode.outcome is not Outcome.INFRA_ERROR
        self._console.print(
            Text(f"[{self._done}/{self._total}] ") + describe(episode), soft_wrap=True
        )


class LiveDisplay(Silent):
    """A bar, the counts so far, and the attempts under way."""

    SHOWN = 8

    def __init__(self, console: Console, total: int, done: Mapping[Outcome, int]) -> None:
        self._console = console
        self._running: dict[str, float] = {}
        self._counts = Counter(done)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            Remaining(),
            console=console,
        )
        self._job = self._bar.add_task("attempts", total=total, completed=sum(done.values()))
        self._live = Live(
            console=console, get_renderable=self._render, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def started(self, task: Task, attempt: int) -> None:
        self._running[f"{task.id}#{attempt}"] = time.monotonic()

    def finished(self, episode: Episode) -> None:
        self._running.pop(f"{episode.task_id}#{episode.attempt}", None)
        self._counts[episode.outcome] += 1
        if episode.outcome is not Outcome.INFRA_ERROR:
            self._bar.advance(self._job)
        if episode.outcome is not Outcome.PASSED:
            self._console.print(describe(episode), soft_wrap=True)

    def _render(self) -> Group:
        counts = Text("  ").join(
            Text(f"{outcome.value} {n}", style=STYLES[outcome])
            for outcome, n in sorted(self._counts.items())
        )
        now = time.monotonic()
        running = [
            shown(f"{name}  {now - since:.0f} s", style="dim")
            for name, since in list(self._running.items())[: self.SHOWN]
        ]
        return Group(self._bar, counts, *running)


def display(console: Console, *, total: int, done: Mapping[Outcome, int], quiet: bool) -> Silent:
    """The display that fits the console. `done` is how attempts ended already, in a resumed run."""
    if quiet:
        return Silent()
    return (LiveDisplay if console.is_terminal else Lines)(console, total, done)


def count(n: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def describe(episode: Episode) -> Text:
    """One line: the attempt, how it ended, the score, the time, and why."""
    line = shown(episode.id).append(" ")
    line.append(episode.outcome.value, style=STYLES[episode.outcome])
    if episode.grade is not None:
        line.append(f" {episode.grade.score:.2f}")
    line.append(f" {episode.timing.total:.1f} s", style="dim")
    if episode.reason:
        cause = f"{episode.cause}: " if episode.cause else ""
        line.append("  ").append(shown(f"{cause}{episode.reason}", style="dim"))
    return line
