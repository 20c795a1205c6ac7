"""Anthropic Messages (docs.anthropic.com/en/api/messages), as Claude Code speaks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from rollout.gateway import sse
from rollout.gateway.dialect import Dialect
from rollout.gateway.dialects.fields import call_key, tokens
from rollout.gateway.dialects.messages_request import chat_request, tool_input
from rollout.types import DialectName, JsonObject, Usage

__all__ = ["MessagesDialect"]

SIGNATURE = "unsigned"
"""Clients drop or refuse thinking without a signature; nobody but Anthropic's servers reads it."""

STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
FINISHES = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""Error types by HTTP status (docs.anthropic.com/en/api/errors)."""

encode = msgspec.json.Encoder().encode


class MessagesDialect(Dialect):
    """`POST /v1/messages`; the body of `count_tokens` is the same without `max_tokens`."""

    name: ClassVar[DialectName] = "messages"
    path: ClassVar[str] = "/messages"

    def to_chat(self, body: JsonObject) -> tuple[JsonObject, None]:
        return chat_request(body), None

    def from_chat(self, reply: JsonObject, body: JsonObject, memory: None) -> JsonObject:
        choice = reply["choices"][0]
        reason, sequence = _stop(choice, body)
        return {
            **_envelope(body),
            "content": list(_blocks(choice["message"], body)),
            "stop_reason": reason,
            "stop_sequence": sequence,
            "usage": _usage(reply.get("usage") or {}),
        }

    def opening(self, body: JsonObject) -> bytes:
        message = {**_envelope(body), "content": [], "stop_reason": None, "stop_sequence": None}
        # The true count follows with message_delta: nobody knows it yet.
        message["usage"] = {"input_tokens": 0, "output_tokens": 0}
        return sse.event({"type": "message_start", "message": message}) + self.keep_alive(body)

    def keep_alive(self, body: JsonObject) -> bytes:
        return sse.event({"type": "ping"})

    def events(self, reply: JsonObject, body: JsonObject) -> Iterator[bytes]:
        for index, block in enumerate(reply["content"]):
            yield from _block_events(index, block)
        delta = {"stop_reason": reply["stop_reason"], "stop_sequence": reply.get("stop_sequence")}
        yield sse.event({"type": "message_delta", "delta": delta, "usage": reply["usage"]})
        yield sse.event({"type": "message_stop"})

    def error(self, status: int, message: str, code: str) -> JsonObject:
        kind = ERRORS.get(status) or ("invalid_request_error" if status < 500 else "api_error")
        if code == "context_length_exceeded":  # Claude Code compacts when it reads these words
            kind, message = "invalid_request_error", f"prompt is too long: {message}"
        return {"type": "error", "error": {"type": kind, "message": message}}

    def error_events(self, message: str, code: str, body: JsonObject) -> Iterator[bytes]:
        yield sse.event(self.error(500, message, code))

    def usage(self, reply: JsonObject) -> Usage:
        usage = reply.get("usage") or {}
        read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        return Usage(
            prompt=sum(tokens(usage.get(key)) for key in read),
            completion=tokens(usage.get("output_tokens")),
        )

    def finish(self, reply: JsonObject) -> str:
        return FINISHES.get(reply.get("stop_reason") or "", "stop")

    def is_empty(self, reply: JsonObject) -> bool:
        return all(block["type"] == "thinking" for block in reply["content"])


def _envelope(body: JsonObject) -> JsonObject:
    return {
        "id": f"msg_{call_key(body.get('messages'))}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
    }


def _stop(choice: JsonObject, body: JsonObject) -> tuple[str, str | None]:
    """Stop reason and stop sequence; vLLM and SGLang tell which of the sequences it was."""
    finish = choice.get("finish_reason") or "stop"
    if finish == "stop":
        if choice["message"].get("tool_calls"):  # what servers say after a forced tool call
            return "tool_use", None
        for key in ("stop_reason", "matched_stop"):
            if choice.get(key) in (body.get("stop_sequences") or ()):
                return "stop_sequence", choice[key]
    return STOP_REASONS.get(finish, "end_turn"), None


def _blocks(message: JsonObject, body: JsonObject) -> Iterator[JsonObject]:
    """Content blocks of a chat message: thinking, text, calls."""
    key = call_key(body.get("messages"))
    if thinking := message.get("reasoning_content") or message.get("reasoning"):
        yield {"type": "thinking", "thinking": thinking, "signature": SIGNATURE}
    if text := message.get("content") or message.get("refusal"):
        yield {"type": "text", "text": text}
    for index, call in enumerate(message.get("tool_calls") or []):
        yield {
            "type": "tool_use",
            "id": call.get("id") or f"toolu_{key}_{index}",
            "name": call["function"]["name"],
            "input": tool_input(call["function"].get("arguments") or ""),
        }


def _usage(usage: JsonObject) -> JsonObject:
    """Anthropic counts what came from the cache apart from the other input tokens."""
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "input_tokens": (usage.get("prompt_tokens") or 0) - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.get("completion_tokens") or 0,
    }


def _block_events(index: int, block: JsonObject) -> Iterator[bytes]:
    """One content block: started empty, filled, stopped."""
    blank, deltas = _deltas(block)
    yield sse.event({"type": "content_block_start", "index": index, "content_block": blank})
    for delta in deltas:
        yield sse.event({"type": "content_block_delta", "index": index, "delta": delta})
    yield sse.event({"type": "content_block_stop", "index": index})


def _deltas(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """A block as it starts, and what fills it. Kinds of a server's own come whole."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            return {**block, "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use":
            whole = encode(block["input"]).decode()
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": whole}]
    return block, []
