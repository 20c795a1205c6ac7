"""HTTP answers to model calls, in the harness's dialect."""

from __future__ import annotations

import msgspec
from aiohttp import web

from rollout.errors import described
from rollout.gateway.dialect import Dialect
from rollout.gateway.exchange import Answer
from rollout.text import one_line
from rollout.types import JsonObject

__all__ = ["STREAM", "events", "gone", "rejection", "say", "whole"]

STREAM = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


def whole(dialect: Dialect, body: JsonObject, answer: Answer) -> web.Response:
    """The complete answer to request `body`; a stream, when it asked for one, in one piece."""
    call = answer.call
    if body.get("stream") is True and answer.refusal is None:
        stream = dialect.opening(body) + events(dialect, body, answer)
        return web.Response(body=stream, headers=STREAM)
    return web.Response(body=call.reply, status=call.status, content_type="application/json")


def events(dialect: Dialect, body: JsonObject, answer: Answer) -> bytes:
    """The rest of a stream whose opening has been sent."""
    refusal = answer.refusal
    if refusal is not None:
        return b"".join(dialect.error_events(str(refusal), refusal.code, body))
    return b"".join(dialect.events(msgspec.json.decode(answer.call.reply), body))


def rejection(dialect: Dialect, status: int, message: str, code: str) -> web.Response:
    """An answer to a request that never becomes a call."""
    body = msgspec.json.encode(dialect.error(status, message, code))
    return web.Response(body=body, status=status, content_type="application/json")


def gone(dialect: Dialect) -> web.Response:
    """The answer to whatever comes after the session was sealed."""
    return rejection(dialect, 410, "the episode is over", "episode_over")


def say(error: BaseException) -> str:
    """An exception in one line."""
    return one_line(described(error))
