"""The functions that a model called, read from its replies in each of the three dialects.

Of a request only the list of tools is read: its history is as long as the episode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rollout.jsontext import read_json
from rollout.types import Call, JsonObject, Trace

__all__ = ["FunctionCall", "function_calls", "own_calls"]

SHELL = re.compile(r"bash|shell|exec|terminal|command", re.IGNORECASE)
"""What the harnesses' generic shells are called."""


@dataclass(frozen=True)
class FunctionCall:
    """A function that a reply called."""

    name: str
    parses: bool
    """Whether its arguments are a JSON object; free text counts where the tool takes free text."""
    exists: bool
    """Whether the request offered a function of this name."""

    @property
    def shell(self) -> bool:
        """Whether it is a generic shell."""
        return bool(SHELL.search(self.name))


class _Asked(msgspec.Struct):
    tools: msgspec.Raw = msgspec.Raw(b"[]")


def own_calls(trace: Trace) -> list[Call]:
    """The calls of the agent and its sub-agents that were answered, a request sent twice counted once."""
    calls: list[Call] = []
    for call in trace.calls:
        if call.kind in ("main", "subagent") and call.status < 400:
            if calls and calls[-1].request == call.request:
                calls.pop()
            calls.append(call)
    return calls


def function_calls(calls: Sequence[Call]) -> Iterator[FunctionCall]:
    """All functions that these calls' replies called, in order."""
    offers: dict[bytes, set[str]] = {}
    for call in calls:
        found = _CALLED[call.dialect](_object(call.reply))
        try:
            raw = bytes(msgspec.json.decode(call.request, type=_Asked).tools)
        except ValueError:
            raw = b"[]"
        if raw not in offers:
            offers[raw] = set(_offered(read_json(raw)))
        for name, parses in found:
            yield FunctionCall(name, parses, name in offers[raw])


def _offered(tools: Any) -> Iterator[str]:
    """Names of a request's tools; those of a namespace with and without it; a built-in's type."""
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        function = tool.get("function")
        named = function if isinstance(function, dict) else tool
        name = str(named.get("name") or tool.get("type") or "")
        yield name
        for inner in _offered(tool.get("tools")):
            yield from (inner, f"{name}{inner}")


def _chat(reply: JsonObject) -> Iterator[tuple[str, bool]]:
    for choice in _objects(reply.get("choices")):
        for call in _objects(_dict(choice.get("message")).get("tool_calls")):
            function = _dict(call.get("function"))
            yield str(function.get("name")), _is_object(function.get("arguments"))


def _responses(reply: JsonObject) -> Iterator[tuple[str, bool]]:
    for item in _objects(reply.get("output")):
        kind = str(item.get("type"))
        if kind == "function_call":
            yield str(item.get("name")), _is_object(item.get("arguments"))
        elif kind.endswith("_call"):
            yield str(item.get("name") or kind.removesuffix("_call")), True


def _messages(reply: JsonObject) -> Iterator[tuple[str, bool]]:
    for part in _objects(reply.get("content")):
        if part.get("type") == "tool_use":
            yield str(part.get("name")), _is_object(part.get("input"))


_CALLED = {"chat": _chat, "responses": _responses, "messages": _messages}


def _is_object(arguments: Any) -> bool:
    """No arguments at all are an empty object."""
    if isinstance(arguments, str) and arguments.strip():
        try:
            return isinstance(msgspec.json.decode(arguments), dict)
        except ValueError:
            return False
    return arguments in (None, "") or isinstance(arguments, dict)


def _object(data: bytes) -> JsonObject:
    try:
        return _dict(msgspec.json.decode(data))
    except ValueError:
        return {}


def _dict(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
