"""Online-Mind2Web: tasks on websites, three levels (Xue et al. 2025, "An Illusion of Progress?").

Without `--data` it runs the built-in tasks on sites of our own, offline. With it, the benchmark's own
file: 300 tasks, judged by an LLM. That file was changed several times, so its version is told with every
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from environments.browser_use.task import BrowserTask
from rollout.types import JsonObject
from suites.browser import BrowserSuite
from suites.online_mind2web.builtin import builtin_tasks
from suites.online_mind2web.original import Tasks, load

__all__ = ["OnlineMind2Web"]


class OnlineMind2Web(BrowserSuite):
    """The built-in web tasks, or the 300."""

    name = "online_mind2web"
    title = "Online-Mind2Web: tasks on websites, in a real browser"
    protocol = "webjudge"

    def built_in(self) -> Sequence[BrowserTask]:
        return builtin_tasks()

    def original(self, data: Path) -> tuple[list[BrowserTask], list[str]]:
        loaded = load(data)
        return loaded.tasks(self.options.max_steps), [loaded.note]

    def source(self, data: Path) -> JsonObject:
        loaded: Tasks = load(data)
        return {
            **{"file": loaded.records.path.name, "sha256": loaded.records.sha256},
            **{"ids": loaded.ids, "version": loaded.version},
        }
