"""OpenAI Responses (platform.openai.com/docs/api-reference/responses), as Codex speaks it.

Without state: a request brings its whole history. Fields that have no meaning for a chat server (`store`,
`prompt_cache_key`, `client_metadata`, ...) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, ClassVar

from rollout.gateway import sse
from rollout.gateway.dialect import Dialect
from rollout.gateway.dialects.chat import error_body
from rollout.gateway.dialects.fields import call_key, tokens
from rollout.gateway.dialects.responses_request import SEALED, chat_request
from rollout.gateway.dialects.tool_names import ToolNames, freeform_input
from rollout.types import DialectName, JsonObject, Usage

__all__ = ["ResponsesDialect"]

Emit = Callable[..., bytes]

REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Chat's finish reasons that leave a response incomplete, in Responses' words."""

PARTS: dict[str, tuple[str, str, JsonObject]] = {
    "output_text": ("response.output_text", "text", {"logprobs": []}),
    "refusal": ("response.refusal", "refusal", {}),
    "reasoning_text": ("response.reasoning_text", "text", {}),
}
"""How a content part is streamed: its events, the field that grows, and what its events carry besides."""

GROWING = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
}
"""How a call is streamed: its events, and the field that grows."""


class ResponsesDialect(Dialect):
    """`POST /v1/responses`."""

    name: ClassVar[DialectName] = "responses"
    path: ClassVar[str] = "/responses"

    def to_chat(self, body: JsonObject) -> tuple[JsonObject, ToolNames]:
        return chat_request(body)

    def from_chat(self, reply: JsonObject, body: JsonObject, memory: ToolNames) -> JsonObject:
        choice = reply["choices"][0]
        reason = REASONS.get(choice.get("finish_reason") or "")
        status = "incomplete" if reason else "completed"
        output = list(_output(choice["message"], body, memory, status))
        return {
            **_response(body, status, output),
            "created_at": reply.get("created") or 0,
            "incomplete_details": {"reason": reason} if reason else None,
            "usage": _usage(reply.get("usage") or {}),
        }

    def opening(self, body: JsonObject) -> bytes:
        response = _response(body, "in_progress", [])
        created = {"type": "response.created", "response": response, "sequence_number": 0}
        return sse.event(created) + self.keep_alive(body)

    def keep_alive(self, body: JsonObject) -> bytes:
        """The opening's second event again, its number included."""
        response = _response(body, "in_progress", [])
        return sse.event(
            {"type": "response.in_progress", "response": response, "sequence_number": 1}
        )

    def events(self, reply: JsonObject, body: JsonObject) -> Iterator[bytes]:
        emit = _numbered()
        for index, item in enumerate(reply["output"]):
            yield from _item_events(index, item, emit)
        status = reply.get("status") or "completed"
        # A reply passed through has its server's id, but a stream must keep the id of its opening.
        response = {**reply, "id": _response_id(body)}
        yield emit(f"response.{status}", response=response)

    def error(self, status: int, message: str, code: str) -> JsonObject:
        return error_body(status, message, code)

    def error_events(self, message: str, code: str, body: JsonObject) -> Iterator[bytes]:
        failed = _response(body, "failed", [])
        failed["error"] = {"code": code, "message": message}
        yield _numbered()("response.failed", response=failed)

    def usage(self, reply: JsonObject) -> Usage:
        usage = reply.get("usage") or {}
        return Usage(
            prompt=tokens(usage.get("input_tokens")), completion=tokens(usage.get("output_tokens"))
        )

    def finish(self, reply: JsonObject) -> str:
        reason = (reply.get("incomplete_details") or {}).get("reason")
        if reason:
            return "content_filter" if reason == "content_filter" else "length"
        called = any(item["type"] in GROWING for item in reply["output"])
        return "tool_calls" if called else "stop"

    def is_empty(self, reply: JsonObject) -> bool:
        return all(
            item["type"] == "reasoning" or item.get("content") == [] for item in reply["output"]
        )


def _response_id(body: JsonObject) -> str:
    return f"resp_{call_key(body.get('input'))}"


def _response(body: JsonObject, status: str, output: list[JsonObject]) -> JsonObject:
    """A response object. It does not repeat the request's tools: no client reads them back."""
    return {
        "id": _response_id(body),
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": body.get("model", ""),
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": [],
        "usage": None,
    }


def _output(
    message: JsonObject, body: JsonObject, names: ToolNames, status: str
) -> Iterator[JsonObject]:
    """Output items of a chat message: reasoning, text, calls."""
    key = call_key(body.get("input"))
    calls = message.get("tool_calls") or []
    if reasoning := message.get("reasoning_content") or message.get("reasoning"):
        yield _reasoning(reasoning, body, f"rs_{key}")
    content = _content(message)
    if content or not calls:
        yield {
            "type": "message",
            "id": f"msg_{key}",
            "status": status,
            "role": "assistant",
            "content": content,
        }
    for index, call in enumerate(calls):
        yield {**_call(call, names, f"{key}_{index}"), "status": status}


def _reasoning(text: str, body: JsonObject, item_id: str) -> JsonObject:
    """A reasoning item. Codex sends `content` back; clients that ask for the encrypted content (the
    contract of `store: false`) may send that alone, so it then carries the text as well.
    """
    item: JsonObject = {
        "type": "reasoning",
        "id": item_id,
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}],
    }
    if "reasoning.encrypted_content" in (body.get("include") or ()):
        item["encrypted_content"] = SEALED + text
    return item


def _content(message: JsonObject) -> list[JsonObject]:
    parts: list[JsonObject] = []
    if text := message.get("content"):
        parts.append({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
    if refusal := message.get("refusal"):
        parts.append({"type": "refusal", "refusal": refusal})
    return parts


def _call(call: JsonObject, names: ToolNames, key: str) -> JsonObject:
    function = call["function"]
    tool = names.tool(function["name"])
    arguments = function.get("arguments") or ""
    item: JsonObject = {"type": "function_call", "id": f"fc_{key}", "arguments": arguments}
    if tool.freeform:
        item = {
            "type": "custom_tool_call",
            "id": f"ctc_{key}",
            "input": freeform_input(arguments),
        }
    item |= {"call_id": call.get("id") or f"call_{key}", "name": tool.name}
    if tool.namespace:
        item["namespace"] = tool.namespace
    return item


def _usage(usage: JsonObject) -> JsonObject:
    prompt = usage.get("prompt_tokens") or 0
    completion = usage.get("completion_tokens") or 0
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": prompt + completion,
    }


def _numbered() -> Emit:
    """A maker of events, numbered on from the opening's two."""
    numbers = count(2)

    def emit(kind: str, **fields: Any) -> bytes:
        return sse.event({"type": kind, **fields, "sequence_number": next(numbers)})

    return emit


def _item_events(index: int, item: JsonObject, emit: Emit) -> Iterator[bytes]:
    """One output item: added empty, filled, done."""
    at = {"item_id": item.get("id", ""), "output_index": index}
    event, field = GROWING.get(item["type"], ("", "content"))
    parts = item.get("content") or []
    blank = {**item, "status": "in_progress", field: "" if event else []}
    yield emit("response.output_item.added", item=blank, output_index=index)
    if event:
        yield emit(f"{event}.delta", **at, delta=item[field])
        yield emit(f"{event}.done", **at, **{field: item[field]}, name=item["name"])
    for number, part in enumerate(parts):
        yield from _part_events(part, {**at, "content_index": number}, emit)
    yield emit("response.output_item.done", item=item, output_index=index)


def _part_events(part: JsonObject, at: JsonObject, emit: Emit) -> Iterator[bytes]:
    event, field, extra = PARTS[part["type"]]
    yield emit("response.content_part.added", **at, part={**part, field: ""})
    yield emit(f"{event}.delta", **at, delta=part[field], **extra)
    yield emit(f"{event}.done", **at, **{field: part[field]}, **extra)
    yield emit("response.content_part.done", **at, part=part)
