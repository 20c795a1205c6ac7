"""An episode on a screen as a strip of pictures: what the agent saw, and what it did about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rollout.types import JsonObject, ToolCall

__all__ = ["frames"]

USUAL = (("button", "left"), ("count", 1))
"""Arguments that go without saying."""


def frames(tool_calls: Sequence[ToolCall], thoughts: Mapping[int, str]) -> list[JsonObject]:
    """One frame per tool call: the screen before it, the points that it names, the thought and the URL.

    `thoughts` has what the agent said with a tool call, by the call's index. The last frame is the screen
    that was left. Empty where no tool showed a picture.
    """
    if not any(call.images for call in tool_calls):
        return []
    strip, picture, url = [], "", ""
    for call in tool_calls:
        strip.append(
            {
                "tool": call.index,
                "picture": picture,
                "url": url,
                "action": _action(call),
                "points": list(_points(call.arguments)),
                "thought": thoughts.get(call.index, ""),
                "error": _text(call.reply, "error"),
            }
        )
        picture = call.images[-1] if call.images else picture
        url = _text(call.reply, "url") or url
    return [
        *strip,
        {"tool": None, "picture": picture, "url": url, "action": "the end", "points": []},
    ]


def _points(arguments: Any) -> Iterator[JsonObject]:
    """The points that a call names, as fractions of the screen: one for a click, two for a drag."""
    if not isinstance(arguments, dict):
        return
    for x, y in (("x", "y"), ("from_x", "from_y"), ("to_x", "to_y")):
        place = arguments.get(x), arguments.get(y)
        if all(isinstance(v, int | float) and 0 <= v <= 1 for v in place):
            yield {"x": place[0], "y": place[1]}


def _action(call: ToolCall) -> str:
    """As people write it: `click at (0.31, 0.72)`, `type "milk"`."""
    name = call.name.removeprefix("browser_")
    if not isinstance(call.arguments, dict):
        return name
    places = [f"({point['x']:.2f}, {point['y']:.2f})" for point in _points(call.arguments)]
    placed = {"x", "y", "from_x", "from_y", "to_x", "to_y"} if places else set()
    others = [
        _argument(key, value)
        for key, value in call.arguments.items()
        if key not in placed and (key, value) not in USUAL and value is not False
    ]
    where = [f"at {' to '.join(places)}"] if places else []
    return " ".join([name, *others, *where])


def _argument(key: str, value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return key if value is True else f"{key} {value}"


def _text(reply: Any, key: str) -> str:
    value = reply.get(key) if isinstance(reply, dict) else None
    return value if isinstance(value, str) else ""
