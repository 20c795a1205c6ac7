"""Server-sent events as model APIs write them: one line of JSON each."""

from __future__ import annotations

from typing import Any

import msgspec

from rollout.types import JsonObject

__all__ = ["DONE", "data", "event"]

DONE = b"data: [DONE]\n\n"
"""The end of a chat-completions stream."""

encode = msgspec.json.Encoder().encode


def data(payload: Any) -> bytes:
    """An unnamed event."""
    return b"data: %b\n\n" % encode(payload)


def event(payload: JsonObject) -> bytes:
    """An event that is named by its payload's `type`."""
    return b"event: %b\ndata: %b\n\n" % (payload["type"].encode(), encode(payload))
