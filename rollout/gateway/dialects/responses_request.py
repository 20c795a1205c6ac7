"""A Responses request as a chat request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rollout.gateway.dialects.fields import need, objects, optional, unsupported
from rollout.gateway.dialects.history import History, function_call, text_part
from rollout.gateway.dialects.tool_names import ToolNames, freeform_arguments
from rollout.types import JsonObject

__all__ = ["SEALED", "chat_request"]

SEALED = "text:"
"""Begins the `encrypted_content` that we made ourselves; anybody else's can't be read, and is ignored."""

SAME = ("model", "temperature", "top_p", "parallel_tool_calls")
"""Fields that mean the same in both formats."""

STATEFUL = ("previous_response_id", "conversation", "prompt")
"""Fields that refer to something kept by the server, which nobody keeps here."""


def chat_request(body: JsonObject) -> tuple[JsonObject, ToolNames]:
    """The chat request, and the tool names to read the reply with. Raises ValueError."""
    for key in STATEFUL:
        if body.get(key) is not None:
            raise ValueError(f"{key}: nothing is kept between calls; send the whole history")
    names = ToolNames()
    tools = list(names.functions(optional(body, "tools", list) or [], "tools"))
    chat = {key: body[key] for key in SAME if body.get(key) is not None}
    chat["messages"] = _messages(body, names)
    if tools:
        chat["tools"] = tools
        if (choice := body.get("tool_choice")) is not None:
            chat["tool_choice"] = _tool_choice(choice, names)
    else:
        chat.pop("parallel_tool_calls", None)
    chat |= _limits(body)
    return chat, names


def _limits(body: JsonObject) -> JsonObject:
    """Length, effort and format of the reply."""
    found: JsonObject = {"max_completion_tokens": body.get("max_output_tokens")}
    found["reasoning_effort"] = (optional(body, "reasoning", dict) or {}).get("effort")
    text = optional(body, "text", dict) or {}
    if form := optional(text, "format", dict, "text"):
        found["response_format"] = _response_format(form)
    return {key: value for key, value in found.items() if value is not None}


def _response_format(form: JsonObject) -> JsonObject | None:
    kind = need(form, "type", str, "text.format")
    if kind == "text":
        return None
    if kind == "json_schema":
        schema = {key: value for key, value in form.items() if key != "type" and value is not None}
        return {"type": kind, "json_schema": schema}
    if kind == "json_object":
        return {"type": kind}
    raise unsupported(kind, "text.format", "type")


def _tool_choice(choice: Any, names: ToolNames) -> Any:
    if isinstance(choice, str):
        return choice
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if kind not in ("function", "custom"):
        raise unsupported(kind, "tool_choice", "type")
    name = need(choice, "name", str, "tool_choice")
    namespace = optional(choice, "namespace", str, "tool_choice") or ""
    return {"type": "function", "function": {"name": names.flat(name, namespace)}}


def _messages(body: JsonObject, names: ToolNames) -> list[JsonObject]:
    history = History()
    if instructions := optional(body, "instructions", str):
        history.system(instructions)
    items = body.get("input")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for where, item in objects(need({"input": items}, "input", list), "input"):
        _add(item, where, history, names)
    return history.finish()


def _add(item: JsonObject, where: str, history: History, names: ToolNames) -> None:
    match item.get("type") or "message":
        case "message":
            _message(item, where, history)
        case "reasoning":
            if thoughts := _thoughts(item, where):
                history.assistant(reasoning=thoughts)
        case "function_call":
            arguments = need(item, "arguments", str, where)
            history.assistant(calls=[_call(item, arguments, where, names)])
        case "custom_tool_call":
            arguments = freeform_arguments(need(item, "input", str, where))
            history.assistant(calls=[_call(item, arguments, where, names)])
        case "function_call_output" | "custom_tool_call_output":
            history.tool(need(item, "call_id", str, where), _parts(item, "output", where))
        case kind:
            raise unsupported(kind, where, "type")


def _message(item: JsonObject, where: str, history: History) -> None:
    role = need(item, "role", str, where)
    if role in ("system", "developer"):
        history.system("\n\n".join(text for _, text in _texts(item, where)))
    elif role == "user":
        history.user(_parts(item, "content", where))
    elif role == "assistant":
        said = list(_texts(item, where))
        history.assistant(
            text="".join(text for kind, text in said if kind != "refusal"),
            refusal="".join(text for kind, text in said if kind == "refusal"),
        )
    else:
        raise unsupported(role, where, "role")


def _thoughts(item: JsonObject, where: str) -> str:
    """The text of a reasoning item: our own in full, else what is readable of it."""
    sealed = optional(item, "encrypted_content", str, where) or ""
    if sealed.startswith(SEALED):
        return sealed.removeprefix(SEALED)
    for key in ("content", "summary"):
        steps = objects(optional(item, key, list, where) or [], f"{where}.{key}")
        if texts := [need(step, "text", str, path) for path, step in steps]:
            return "\n\n".join(texts)
    return ""


def _call(item: JsonObject, arguments: str, where: str, names: ToolNames) -> JsonObject:
    namespace = optional(item, "namespace", str, where) or ""
    name = names.flat(need(item, "name", str, where), namespace)
    return function_call(need(item, "call_id", str, where), name, arguments)


def _texts(item: JsonObject, where: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each part of a message that can only hold text."""
    content = item.get("content")
    if isinstance(content, str):
        yield "text", content
        return
    for path, part in objects(need(item, "content", list, where), f"{where}.content"):
        kind = need(part, "type", str, path)
        if kind not in ("input_text", "output_text", "text", "refusal"):
            raise unsupported(kind, path, "type")
        yield kind, need(part, "refusal" if kind == "refusal" else "text", str, path)


def _parts(item: JsonObject, key: str, where: str) -> list[JsonObject]:
    """A field that is a string or a list of parts, as chat parts."""
    content = item.get(key)
    if isinstance(content, str):
        return [text_part(content)]
    parts = objects(need(item, key, list, where), f"{where}.{key}")
    return [_part(part, path) for path, part in parts]


def _part(part: JsonObject, where: str) -> JsonObject:
    kind = need(part, "type", str, where)
    if kind in ("input_text", "output_text", "text"):
        return text_part(need(part, "text", str, where))
    if kind == "input_image":
        image: JsonObject = {"url": need(part, "image_url", str, where)}
        if detail := optional(part, "detail", str, where):
            image["detail"] = detail
        return {"type": "image_url", "image_url": image}
    if kind == "input_file":
        file = {
            "filename": part.get("filename") or "",
            "file_data": need(part, "file_data", str, where),
        }
        return {"type": "file", "file": file}
    if kind == "input_audio":
        return {"type": "input_audio", "input_audio": need(part, "input_audio", dict, where)}
    raise unsupported(kind, where, "type")
