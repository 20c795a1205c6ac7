"""A Messages request as a chat request.

Fields that have no meaning for a chat server (`cache_control`, `metadata`, thinking budgets, ...) are
left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from rollout.gateway.dialects.fields import need, objects, optional, unsupported
from rollout.gateway.dialects.history import History, function_call, text_part
from rollout.types import JsonObject

__all__ = ["BILLING", "chat_request", "tool_input"]

SAME = ("model", "temperature", "top_p", "top_k")
"""Fields that mean the same in both formats; `top_k` to every open server."""

RENAMED = {"max_tokens": "max_completion_tokens", "stop_sequences": "stop"}

CHOICES = {"auto": "auto", "any": "required", "none": "none"}

BILLING = "x-anthropic-billing-header:"
"""Begins a system block of Claude Code that is meant for Anthropic's servers and may change by call."""

UNPARSED = "__unparsed_arguments__"
"""The one field of a tool input made of arguments that are no JSON object: their text, unchanged."""


def chat_request(body: JsonObject) -> JsonObject:
    """The chat request. Raises ValueError."""
    chat = {key: body[key] for key in SAME if body.get(key) is not None}
    chat |= {new: body[old] for old, new in RENAMED.items() if body.get(old)}
    chat["messages"] = _messages(body)
    chat |= _tools(body)
    config = optional(body, "output_config", dict) or {}
    thinking = optional(body, "thinking", dict) or {}
    if config.get("effort") and thinking.get("type") != "disabled":
        chat["reasoning_effort"] = config["effort"]
    if form := optional(config, "format", dict, "output_config"):
        chat["response_format"] = _response_format(form)
    return chat


def tool_input(arguments: str) -> JsonObject:
    """A tool call's arguments as the object that Messages wants; its inverse is `_arguments`.

    Models write arguments that are no JSON, or no object. Those go out under one odd name, so that the
    harness rejects the call as it would any bad one, and come back as they were.
    """
    if not arguments:  # what some servers write for no arguments at all
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        value = None
    if isinstance(value, dict) and UNPARSED not in value:
        return value
    return {UNPARSED: arguments}


def _arguments(value: JsonObject) -> str:
    """A tool input as chat's argument string, spaced as models write JSON."""
    if value.keys() == {UNPARSED} and isinstance(value[UNPARSED], str):
        return str(value[UNPARSED])
    return json.dumps(value, ensure_ascii=False)


def _response_format(form: JsonObject) -> JsonObject:
    if form.get("type") != "json_schema":
        raise unsupported(form.get("type"), "output_config.format", "type")
    schema = need(form, "schema", dict, "output_config.format")
    return {
        "type": "json_schema",
        "json_schema": {"name": "output", "schema": schema, "strict": True},
    }


def _tools(body: JsonObject) -> JsonObject:
    """The tool fields. Tools without a schema of their own run on Anthropic's servers: left out."""
    offered = objects(optional(body, "tools", list) or [], "tools")
    tools = [_tool(tool, where) for where, tool in offered if _is_custom(tool)]
    if not tools:
        return {}
    fields: JsonObject = {"tools": tools}
    if choice := optional(body, "tool_choice", dict):
        fields["tool_choice"] = _tool_choice(choice)
        if choice.get("disable_parallel_tool_use"):
            fields["parallel_tool_calls"] = False
    return fields


def _is_custom(tool: JsonObject) -> bool:
    return tool.get("type") in (None, "custom")


def _tool(tool: JsonObject, where: str) -> JsonObject:
    function: JsonObject = {
        "name": need(tool, "name", str, where),
        "description": optional(tool, "description", str, where) or "",
        "parameters": need(tool, "input_schema", dict, where),
    }
    if tool.get("strict"):
        function["strict"] = True
    return {"type": "function", "function": function}


def _tool_choice(choice: JsonObject) -> Any:
    kind = need(choice, "type", str, "tool_choice")
    if kind == "tool":
        name = need(choice, "name", str, "tool_choice")
        return {"type": "function", "function": {"name": name}}
    if kind not in CHOICES:
        raise unsupported(kind, "tool_choice", "type")
    return CHOICES[kind]


def _messages(body: JsonObject) -> list[JsonObject]:
    history = History()
    if body.get("system") is not None:
        history.system(_instructions(body, "system", ""))
    for where, message in objects(need(body, "messages", list), "messages"):
        match need(message, "role", str, where):
            case "user":
                _user(message, where, history)
            case "assistant":
                _assistant(message, where, history)
            case "system":
                history.system(_instructions(message, "content", where))
            case role:
                raise unsupported(role, where, "role")
    return history.finish()


def _instructions(parent: JsonObject, key: str, where: str) -> str:
    texts = (need(block, "text", str, path) for path, block in _blocks(parent, key, where))
    return "\n\n".join(text for text in texts if not text.startswith(BILLING))


def _user(message: JsonObject, where: str, history: History) -> None:
    """Tool results become tool messages, and what else there is a user message after them."""
    parts: list[JsonObject] = []
    for path, block in _blocks(message, "content", where):
        if block.get("type") == "tool_result":
            history.tool(need(block, "tool_use_id", str, path), _result(block, path))
        else:
            parts += _parts(block, path)
    if parts:
        history.user(parts)


def _result(block: JsonObject, where: str) -> list[JsonObject]:
    """A tool's output. Chat has no field for a failure, but the model has to see it."""
    parts: list[JsonObject] = [text_part("[error]")] if block.get("is_error") else []
    if block.get("content") is not None:
        for path, inner in _blocks(block, "content", where):
            parts += _parts(inner, path)
    return parts


def _assistant(message: JsonObject, where: str, history: History) -> None:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[JsonObject] = []
    for path, block in _blocks(message, "content", where):
        match need(block, "type", str, path):
            case "text":
                texts.append(need(block, "text", str, path))
            case "thinking":
                thoughts.append(need(block, "thinking", str, path))
            case "redacted_thinking":
                pass  # encrypted: nothing that another model could read
            case "tool_use":
                calls.append(_call(block, path))
            case kind:
                raise unsupported(kind, path, "type")
    history.assistant(text="".join(texts), reasoning="\n\n".join(thoughts), calls=calls)


def _call(block: JsonObject, where: str) -> JsonObject:
    arguments = _arguments(need(block, "input", dict, where))
    return function_call(need(block, "id", str, where), need(block, "name", str, where), arguments)


def _blocks(parent: JsonObject, key: str, where: str) -> Iterator[tuple[str, JsonObject]]:
    """The blocks of a field that is a string or a list of blocks, each with its path."""
    content = parent.get(key)
    path = f"{where}.{key}" if where else key
    if isinstance(content, str):
        yield path, {"type": "text", "text": content}
    else:
        yield from objects(need(parent, key, list, where), path)


def _parts(block: JsonObject, where: str) -> Sequence[JsonObject]:
    """A content block as chat parts."""
    match need(block, "type", str, where):
        case "text":
            return [text_part(need(block, "text", str, where))]
        case "image":
            url = _url(need(block, "source", dict, where), f"{where}.source")
            return [{"type": "image_url", "image_url": {"url": url}}]
        case "document":
            return _document(block, where)
        case "search_result":
            about = f"{block.get('title', '')}\n{block.get('source', '')}"
            inner = (_parts(part, path) for path, part in _blocks(block, "content", where))
            return [text_part(about), *(part for parts in inner for part in parts)]
        case kind:
            raise unsupported(kind, where, "type")


def _document(block: JsonObject, where: str) -> list[JsonObject]:
    source = need(block, "source", dict, where)
    title = optional(block, "title", str, where) or ""
    about = "\n".join(filter(None, (title, optional(block, "context", str, where))))
    parts: list[JsonObject] = [text_part(about)] if about else []
    where = f"{where}.source"
    match need(source, "type", str, where):
        case "text":
            parts.append(text_part(need(source, "data", str, where)))
        case "content":
            for path, inner in _blocks(source, "content", where):
                parts += _parts(inner, path)
        case "base64":
            file = {"filename": title or "document.pdf", "file_data": _url(source, where)}
            parts.append({"type": "file", "file": file})
        case kind:
            raise unsupported(kind, where, "type")
    return parts


def _url(source: JsonObject, where: str) -> str:
    match need(source, "type", str, where):
        case "base64":
            kind = need(source, "media_type", str, where)
            return f"data:{kind};base64,{need(source, 'data', str, where)}"
        case "url":
            return need(source, "url", str, where)
        case kind:
            raise unsupported(kind, where, "type")
