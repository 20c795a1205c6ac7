"""The contract of a judge: an LLM that turns evidence and a rubric into a verdict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from rollout.types import JsonObject, Record

__all__ = ["Judge", "Verdict"]


class Verdict(Record, frozen=True, kw_only=True):
    """What a judge said, and the reply that it said it in."""

    score: float
    """In [0, 1]."""
    reasoning: str = ""
    raw: str = ""
    """The model's reply, untouched."""


class Judge(ABC):
    """Asks a model for a verdict. Raises JudgeError rather than inventing a score."""

    @abstractmethod
    async def ask(self, messages: list[dict[str, Any]]) -> Verdict:
        """Send chat messages that end in a request for `{"score": 0..1, "reasoning": "..."}`."""

    def fingerprint(self) -> JsonObject:
        """Model, address class and sampling, for the manifest."""
        return {}
