"""The contract of a suite: which tasks, in which environment, and how often each is attempted.

One package (or file) in `suites/` that exports one `Suite` subclass is a new benchmark; its
`__main__` hands an instance to `suites.main.main`.
"""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rollout.environment import Environment
from rollout.types import JsonObject, Task

if TYPE_CHECKING:
    from rollout.episode import Setup

__all__ = ["Suite"]


class Suite(ABC):
    """A benchmark: tasks, an environment to attempt them in, and the usual number of attempts."""

    name: ClassVar[str]
    title: ClassVar[str]
    """One line for `--help`."""
    attempts: ClassVar[int] = 3
    """Attempts per task, the k of pass^k, unless the user says otherwise."""
    harness: ClassVar[str] = "react"
    """The harness that runs its tasks, unless the user names another."""

    def add_arguments(self, parser: argparse._ArgumentGroup) -> None:
        """Options of its own on the command line."""

    def configure(self, arguments: argparse.Namespace) -> None:
        """Keep what it needs of the parsed command line: its own options and the shared ones.

        Raises UsageError.
        """

    def notes(self) -> Sequence[str]:
        """Lines under the head of the table: what a reader must know to compare the figures."""
        return ()

    @abstractmethod
    def environment(self) -> Environment:
        """The environment of its tasks."""

    @abstractmethod
    def tasks(self, data: Path | None) -> Sequence[Task]:
        """All tasks: the built-in ones, or those in the user's own copy of the data.

        Raises UsageError naming the file and the field where the data is wrong.
        """

    def unfit(self, task: Task, setup: Setup) -> str:
        """Why the task can't run with this harness, sandbox or judge; empty when it can."""
        return ""

    def fingerprint(self, data: Path | None) -> JsonObject:
        """Where the tasks came from, for the manifest."""
        return {"data": "built-in" if data is None else str(data)}
