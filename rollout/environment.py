"""The contract of an environment: a world to act in, tools to act with, and a grade for what is left.

One file in `environments/` that exports one `Environment` subclass is a new environment.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from rollout.contract import Checked
from rollout.evidence import evidence
from rollout.types import Grade, JsonObject, Task, ToolReply, ToolSpec, Trace

if TYPE_CHECKING:
    from rollout.judge import Judge
    from rollout.protocol import Evidence
    from rollout.sandbox import Sandbox

__all__ = ["Environment", "Surface", "World"]


@dataclass(frozen=True)
class Surface(Checked):
    """What the harness is told of a world. It learns the rest by calling tools."""

    prompt: str
    tools: tuple[ToolSpec, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Placed in the workspace before the harness starts: relative path -> content."""
    user: bool = False
    """Whether a user replies to the agent's answers: `World.reply()`."""


class World(ABC):
    """One episode's private world. It lives in the runner's process; the agent reaches it by tools."""

    surface: Surface

    async def call(self, name: str, arguments: Any) -> ToolReply:
        """Answer one tool call. Unknown tools and bad arguments are replies (404, 422), not errors.

        It has to end by itself: an attempt that ran out of time in a call is held against the world.
        """
        return ToolReply(status=404, body={"error": f"no tool named {name!r}"})

    async def reply(self, answer: str) -> str | None:
        """The user's reply to the agent's answer; None when the conversation is over."""
        return None

    async def locate(self, target: str) -> JsonObject:
        """Find what a scripted solution names: a button's `x` and `y` on the screen, for instance.

        Scripts write `{{at:TARGET|x}}` in a step's arguments where a value can't be known in advance.
        Agents have no way to ask this. Raises LookupError when the target is not there.
        """
        raise LookupError(f"{type(self).__name__} has no targets")

    async def snapshot(self, sandbox: Sandbox) -> JsonObject:
        """The world that the agent left behind, as JSON: all that grading needs to know of it.

        The harness has ended and can call nothing any more; its sandbox is still there to look into.
        """
        return {}


class Environment(ABC):
    """Makes worlds and grades what becomes of them."""

    surfaces: ClassVar[tuple[str, ...]] = ("native", "mcp", "skill")
    """The tool surfaces by which its tools can be used."""

    async def prepare(self) -> None:
        """Check that all its worlds need is there, before anything starts. Raises UsageError."""

    async def close(self) -> None:
        """Release what its worlds share, when the run is over."""

    @abstractmethod
    def open(self, task: Task, seed: int) -> AbstractAsyncContextManager[World]:
        """Make the world of one attempt. `seed` fixes everything random about it."""

    @abstractmethod
    async def grade(self, task: Task, trace: Trace, judge: Judge | None = None) -> Grade:
        """Grade an attempt from its records alone, so that it can be graded again later.

        Raises JudgeError when a verdict is needed and can't be had.
        """

    def evidence(self, task: Task, trace: Trace) -> Evidence:
        """What a judge may be shown of an attempt."""
        return evidence(task, trace)

    def fingerprint(self) -> JsonObject:
        """Versions and settings that belong in the manifest."""
        return {}
