"""How protocols put their questions: text and pictures as chat messages, several under way at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from judges._verdict import thoughts
from rollout.errors import UsageError
from rollout.judge import Verdict
from rollout.pictures import data_url
from rollout.protocol import Evidence, ScreenStep
from rollout.types import Image, JsonObject

__all__ = [
    "actions",
    "judged",
    "last_screenshots",
    "question",
    "reached",
    "together",
    "within",
]

T = TypeVar("T")


def question(
    system: str, text: str, images: Sequence[Image] = (), closing: str = ""
) -> list[dict[str, Any]]:
    """A system message and one from the user: the text, the pictures, and what follows them."""
    parts: list[JsonObject] = [{"type": "text", "text": text}, *map(_picture, images)]
    if closing:
        parts.append({"type": "text", "text": closing})
    content = text if len(parts) == 1 else parts
    return [{"role": "system", "content": system}, {"role": "user", "content": content}]


def judged(read: Callable[[str], bool]) -> Callable[[str], Verdict]:
    """Makes a verdict of a reply that `read` can tell success or failure from."""

    def verdict(reply: str) -> Verdict:
        return Verdict(score=float(read(reply)), reasoning=thoughts(reply), raw=reply)

    return verdict


async def together(questions: Iterable[Awaitable[T]]) -> list[T]:
    """The answers in order; the first failure calls the others off."""
    asked = [asyncio.ensure_future(each) for each in questions]
    try:
        return await asyncio.gather(*asked)
    finally:
        for each in asked:
            each.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


def actions(steps: Iterable[ScreenStep]) -> list[str]:
    """What was done, with what went wrong with it."""
    return [
        " ".join(f"{step.action} (failed: {step.error})".split()) if step.error else step.action
        for step in steps
    ]


def last_screenshots(evidence: Evidence, k: int) -> list[Image]:
    """The last k, all for 0."""
    found = [step.screenshot for step in evidence.steps if step.screenshot]
    return found[-k:] if k else found


def reached(value: float, threshold: float) -> float:
    """1, which is success, from the threshold on; the value itself below it."""
    return 1.0 if value >= threshold else value


def within(protocol: str, option: str, value: float, low: float, high: float) -> None:
    """Raise UsageError for an option that is out of its range."""
    if not low <= value <= high:
        raise UsageError(
            f"--protocol {protocol}: {option}={value:g} must be from {low:g} to {high:g}"
        )


def _picture(image: Image) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": data_url(image), "detail": "high"}}
