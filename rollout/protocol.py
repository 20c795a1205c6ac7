"""The contract of a judging protocol: how a judge is asked about what an agent did on a screen.

One file in `judges/` that exports one `Protocol` subclass is a new protocol. A protocol decides what the
judge gets to see and how its replies are read; the `Judge` is the model that answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from rollout.judge import Judge, Verdict
from rollout.types import Image, JsonObject

__all__ = ["Evidence", "Protocol", "ScreenStep"]


@dataclass(frozen=True)
class ScreenStep:
    """One step of an agent that looks at a screen."""

    action: str
    """What was done, as people write it: `click at (0.31, 0.72)`."""
    thought: str = ""
    """The reason that the agent gave for it."""
    url: str = ""
    """The page after the action."""
    screenshot: Image | None = None
    """The screen after the action."""
    error: str = ""
    """What went wrong with the action."""


@dataclass(frozen=True)
class Evidence:
    """All that a protocol may show a judge."""

    task: str
    """The instruction, as the agent was given it."""
    steps: tuple[ScreenStep, ...] = ()
    answer: str = ""
    """The agent's final message."""
    start: str = ""
    """The address of the page that it started from."""
    rubric: tuple[str, ...] = ()
    """What a good attempt does, where the task says so."""


class Protocol(ABC):
    """Turns evidence into a verdict by asking a judge."""

    @abstractmethod
    async def verdict(self, evidence: Evidence, judge: Judge) -> Verdict:
        """The judge's verdict; a score of 1 is success. Raises JudgeError where there is none."""

    def fingerprint(self) -> JsonObject:
        """Its name, where its prompts come from, and its settings, for the manifest."""
        return {}
