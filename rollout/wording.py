"""A tool call in words: a caption for people who see the screen, the whole of it for those who don't."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeGuard

from rollout.types import ToolCall

__all__ = ["as_json", "caption", "in_full", "points"]

LONGEST = 1000
"""Characters of a tool's answer that are shown: enough to see what it did."""

USUAL = (("button", "left"), ("count", 1))
"""Arguments that a caption leaves out, for they go without saying."""

PAIRS = (("x", "y"), ("from_x", "from_y"), ("to_x", "to_y"))
"""Names of the arguments that are points of a screen."""


def caption(call: ToolCall) -> str:
    """What was done on a screen, as people write it: `click at (0.31, 0.72)`, `type "milk"`."""
    name = call.name.removeprefix("browser_")
    if not isinstance(call.arguments, dict):
        return name
    places = [f"({x:.2f}, {y:.2f})" for x, y in points(call.arguments)]
    placed = {key for pair in PAIRS for key in pair} if places else set()
    others = [
        _argument(key, value)
        for key, value in call.arguments.items()
        if key not in placed and (key, value) not in USUAL and value is not False
    ]
    where = [f"at {' to '.join(places)}"] if places else []
    return " ".join([name, *others, *where])


def in_full(call: ToolCall) -> str:
    """The call with all its arguments, and with its answer where no picture shows that."""
    asked = f"{call.name} {as_json(call.arguments)}"
    if call.images or call.status >= 400:
        return asked
    told = as_json(call.reply)
    cut = told if len(told) <= LONGEST else f"{told[:LONGEST]}... ({len(told)} characters)"
    return f"{asked} -> {cut}"


def points(arguments: Any) -> Iterator[tuple[float, float]]:
    """The points that a call names, as fractions of the screen: one for a click, two for a drag."""
    if not isinstance(arguments, dict):
        return
    for x, y in PAIRS:
        place = [v for v in (arguments.get(x), arguments.get(y)) if _is_fraction(v)]
        if len(place) == 2:
            yield place[0], place[1]


def as_json(value: object) -> str:
    """JSON for readers: letters of all languages as they are; what JSON can't hold, as text."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _is_fraction(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and 0 <= value <= 1


def _argument(key: str, value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return key if value is True else f"{key} {value}"
