"""An episode on a screen as a strip of pictures: what the agent saw, and what it did about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollout.types import JsonObject, ToolCall
from rollout.wording import caption, points

__all__ = ["frames"]


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
                "action": caption(call),
                "points": [{"x": x, "y": y} for x, y in points(call.arguments)],
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


def _text(reply: Any, key: str) -> str:
    value = reply.get(key) if isinstance(reply, dict) else None
    return value if isinstance(value, str) else ""
