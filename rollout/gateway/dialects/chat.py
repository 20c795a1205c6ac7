"""OpenAI chat-completions, the internal form itself (platform.openai.com/docs/api-reference/chat)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from rollout.gateway import sse
from rollout.gateway.dialect import Dialect
from rollout.gateway.dialects.fields import call_key, need, objects, tokens
from rollout.types import DialectName, JsonObject, Usage

__all__ = ["ChatDialect", "error_body"]

STREAMING = ("stream", "stream_options")


class ChatDialect(Dialect):
    """`POST /v1/chat/completions`."""

    name: ClassVar[DialectName] = "chat"
    path: ClassVar[str] = "/chat/completions"

    def to_chat(self, body: JsonObject) -> tuple[JsonObject, None]:
        for where, message in objects(need(body, "messages", list), "messages"):
            need(message, "role", str, where)
        return {key: value for key, value in body.items() if key not in STREAMING}, None

    def from_chat(self, reply: JsonObject, body: JsonObject, memory: None) -> JsonObject:
        return reply

    def opening(self, body: JsonObject) -> bytes:
        return _chunk(_envelope(body), {"role": "assistant"})

    def keep_alive(self, body: JsonObject) -> bytes:
        return _chunk(_envelope(body), {})

    def events(self, reply: JsonObject, body: JsonObject) -> Iterator[bytes]:
        envelope = _envelope(body)
        for choice in reply["choices"]:
            index = choice.get("index", 0)
            for delta in _deltas(choice["message"]):
                yield _chunk(envelope, delta, index)
            rest = {key: value for key, value in choice.items() if key not in ("message", "index")}
            yield _chunk(envelope, {}, index, **rest)
        options = body.get("stream_options") or {}
        if options.get("include_usage"):
            yield sse.data({**envelope, "choices": [], "usage": reply.get("usage")})
        yield sse.DONE

    def error(self, status: int, message: str, code: str) -> JsonObject:
        return error_body(status, message, code)

    def error_events(self, message: str, code: str, body: JsonObject) -> Iterator[bytes]:
        yield sse.data(error_body(500, message, code))

    def usage(self, reply: JsonObject) -> Usage:
        usage = reply.get("usage") or {}
        return Usage(
            prompt=tokens(usage.get("prompt_tokens")),
            completion=tokens(usage.get("completion_tokens")),
        )

    def finish(self, reply: JsonObject) -> str:
        return reply["choices"][0].get("finish_reason") or ""

    def is_empty(self, reply: JsonObject) -> bool:
        message = reply["choices"][0]["message"]
        return not any(message.get(key) for key in ("content", "tool_calls", "refusal"))


def error_body(status: int, message: str, code: str) -> JsonObject:
    """An error as both of OpenAI's APIs write it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _deltas(message: JsonObject) -> Iterator[JsonObject]:
    """One delta per field of a message, reasoning first, as a live stream would have it."""
    for key in sorted(message, key=lambda key: not key.startswith("reasoning")):
        value = message[key]
        if key == "tool_calls" and value:
            yield {key: [{"index": index, **call} for index, call in enumerate(value)]}
        elif key != "role" and value is not None:
            yield {key: value}


def _chunk(envelope: JsonObject, delta: JsonObject, index: int = 0, **rest: Any) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": None, **rest}
    return sse.data({**envelope, "choices": [choice]})


def _envelope(body: JsonObject) -> JsonObject:
    """The fields that all chunks of a stream share, known before the reply is."""
    return {
        "id": f"chatcmpl-{call_key(body.get('messages'))}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": body.get("model", ""),
    }
