"""The contract of a judge: an LLM that turns evidence and a rubric into a verdict."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, TypeVar

from rollout.errors import JudgeError
from rollout.types import JsonObject, Record, Usage

__all__ = ["Judge", "Spent", "Verdict", "read_verdict"]

T = TypeVar("T")


class Verdict(Record, frozen=True, kw_only=True):
    """What a judge said, and the reply that it said it in."""

    score: float
    """In [0, 1]."""
    reasoning: str = ""
    raw: str = ""
    """The model's reply, untouched."""
    details: JsonObject = {}
    """What led to the score: key points, or the scores of single screenshots."""


class Spent(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What a judge's replies cost."""

    model: str = ""
    calls: int = 0
    """Replies that the model was paid for."""
    cached: int = 0
    """Replies that came from the cache, at no cost."""
    usage: Usage = Usage()

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            model=self.model or other.model,
            calls=self.calls + other.calls,
            cached=self.cached + other.cached,
            usage=self.usage + other.usage,
        )


class Judge(ABC):
    """Asks a model for a verdict. Raises JudgeError rather than inventing a score."""

    model: str = ""
    """The model's name."""
    spent: Spent = Spent()
    """What its replies have cost so far, where it counts."""
    tries = 4
    """A reply that can't be read is asked for again: even at temperature 0 servers vary."""

    @abstractmethod
    async def reply(self, messages: list[dict[str, Any]], repeat: int = 0) -> str:
        """The model's reply to chat messages, untouched.

        `repeat` is how many replies to these messages were of no use already. A cache must keep the
        repeats apart, or it would return the useless reply again. Raises JudgeError when the model gives
        none.
        """

    async def ask(self, messages: list[dict[str, Any]]) -> Verdict:
        """Send chat messages that end in a request for `{"score": 0..1, "reasoning": "..."}`."""
        return await self.ask_for(messages, read_verdict)

    async def ask_for(self, messages: list[dict[str, Any]], read: Callable[[str], T]) -> T:
        """What `read` makes of the reply. The judge is asked again while `read` raises ValueError.

        Raises JudgeError when no reply can be read.
        """
        problem = ""
        for repeat in range(self.tries):
            try:
                return read(await self.reply(messages, repeat))
            except ValueError as error:
                problem = str(error)
        raise JudgeError(f"the judge {self.model} gave no verdict: {problem}")

    def metered(self) -> Self:
        """This judge with a fresh count of its costs; they are added to this one's count as well."""
        return self

    def fingerprint(self) -> JsonObject:
        """Model, address class and sampling, for the manifest."""
        return {}


def read_verdict(text: str) -> Verdict:
    """The verdict in a reply, with prose or braces around it or in it.

    The last JSON object with a `score` counts: models think aloud before they decide. Raises ValueError
    when there is none, or its score is not a number in [0, 1].
    """
    decoder = json.JSONDecoder()
    found: Verdict | None = None
    end = 0
    for start in (match.start() for match in re.finditer(r"\{", text)):
        if start < end:
            continue  # inside an object that is read already: its reasoning may quote a score
        try:
            value, stop = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if "score" in value:
            found, end = _verdict(value, text), stop
    if found is None:
        raise ValueError(f"no JSON object with a score in the reply {text[:200]!r}")
    return found


def _verdict(value: dict[str, Any], raw: str) -> Verdict:
    score = value["score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise ValueError(f"score: {score!r} is not a number from 0 to 1")
    return Verdict(score=float(score), reasoning=str(value.get("reasoning", "")), raw=raw)
