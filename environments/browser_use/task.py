"""The task of a browser: where it starts, what may go wrong there, and how its end is graded."""

from __future__ import annotations

from rollout.types import JsonObject, Task

__all__ = ["BrowserTask"]


class BrowserTask(Task, frozen=True, kw_only=True):
    """A task on the web. `Task.difficulty` is its level: easy, medium, hard."""

    start: str = "about:blank"
    """The page that it starts on: a URL, or `SITE:/path` on a built-in site."""
    sites: tuple[str, ...] = ()
    """Built-in sites that it needs, the one that it starts on included."""
    faults: JsonObject = {}
    """How those sites misbehave: `environments.browser_use.sites` says what there is."""
    verifier: str = ""
    """Path of the Python file whose `verify_<task id>(state, answer)` grades it; empty asks a judge."""
    rubric: tuple[str, ...] = ()
    """For a judge: what a good attempt does."""
    reference_length: int = 0
    """Steps that a person needs, where the benchmark says so."""
