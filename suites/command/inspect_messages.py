"""A recorded conversation as Inspect's chat messages (plain JSON), whatever dialect the harness spoke."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rollout.pictures import recorded
from rollout.transcript import UNREADABLE, chat_messages, main_calls
from rollout.types import JsonObject, Trace

__all__ = ["conversation"]


def conversation(trace: Trace, prompt: str) -> list[JsonObject]:
    """What the last main call sent and was answered; prompt and answer where there is no such call.

    After a compaction that is the shortened history, as the model saw it. The store holds every call.
    """
    try:
        return list(_converted(chat_messages(main_calls(trace)[-1])))
    except UNREADABLE:
        answer = [{"role": "assistant", "content": trace.answer}] if trace.answer else []
        return [{"role": "user", "content": prompt}, *answer]


def _converted(chat: list[JsonObject]) -> Iterator[JsonObject]:
    names: dict[str, str] = {}
    for message in chat:
        role, content = message["role"], _content(message)
        if role == "assistant":
            calls = [_tool_call(call) for call in message.get("tool_calls") or ()]
            names |= {call["id"]: call["function"] for call in calls}
            yield {"role": role, "content": content, "tool_calls": calls or None}
        elif role == "tool":
            asked = str(message.get("tool_call_id"))
            yield {
                "role": role,
                "content": content,
                "tool_call_id": asked,
                "function": names.get(asked),
            }
        else:
            yield {"role": "user" if role == "user" else "system", "content": content}


def _content(message: JsonObject) -> str | list[JsonObject]:
    content = message.get("content") or ""
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(content, str) and not reasoning:
        return content
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    thought = [{"type": "reasoning", "reasoning": str(reasoning)}] if reasoning else []
    return [*thought, *map(_part, parts)]


def _part(part: JsonObject) -> JsonObject:
    if part.get("type") == "image_url":
        url = str(part["image_url"]["url"])
        if (digest := recorded(url)) is None:
            return {"type": "image", "image": url}
        # A log that held every picture of a run would not fit in memory.
        return {"type": "text", "text": f"[picture {digest}: traces.zst holds it]"}
    text = part.get("text")
    return {
        "type": "text",
        "text": text if isinstance(text, str) else msgspec.json.encode(part).decode(),
    }


def _tool_call(call: JsonObject) -> JsonObject:
    """Arguments that are no JSON object are shown as sent, with the error that they are."""
    function = call["function"]
    arguments: Any = function.get("arguments") or "{}"
    error = None
    try:
        parsed = msgspec.json.decode(arguments, type=JsonObject)
    except msgspec.DecodeError as problem:
        parsed, error = {"arguments": arguments}, str(problem)
    return {
        "id": str(call["id"]),
        "function": str(function["name"]),
        "arguments": parsed,
        "parse_error": error,
    }
