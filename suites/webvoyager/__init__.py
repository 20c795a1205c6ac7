"""WebVoyager: questions about websites (He et al. 2024).

Without `--data` it runs the built-in web tasks on sites of our own, offline. With it, the benchmark's
own file (or its checkout): 643 questions. Many of those aged: `--patch` takes the user's file of the ones
that remain, in newer words (595, for instance).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from environments.browser_use.task import BrowserTask
from rollout.types import JsonObject
from suites.browser import BrowserSuite
from suites.online_mind2web.builtin import builtin_tasks
from suites.webvoyager.original import Questions, load

__all__ = ["WebVoyager"]


class WebVoyager(BrowserSuite):
    """The built-in web tasks, or the 643."""

    name = "webvoyager"
    title = "WebVoyager: questions about websites, in a real browser"
    protocol = "webvoyager"

    def add_arguments(self, parser: argparse._ArgumentGroup) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--patch",
            type=Path,
            metavar="FILE",
            help="with --data: the questions that remain, in newer words, in the same form",
        )
        parser.add_argument(
            "--start",
            choices=["site", "blank"],
            default="site",
            help="where an attempt starts: the question's site, or about:blank and told the site",
        )

    def built_in(self) -> Sequence[BrowserTask]:
        return builtin_tasks()

    def original(self, data: Path) -> tuple[list[BrowserTask], list[str]]:
        loaded = self._load(data)
        return loaded.tasks(self.options.max_steps, self.options.start), loaded.notes()

    def source(self, data: Path) -> JsonObject:
        chosen = self.options
        patch = str(chosen.patch) if chosen.patch else None
        return {**self._load(data).source(), "patch": patch, "start": chosen.start}

    def _load(self, data: Path) -> Questions:
        return load(data, self.options.patch)
