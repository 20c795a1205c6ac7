"""The tools of a Responses request as chat functions, and the way back.

Chat knows neither namespaces nor freeform tools. A namespaced tool is shown as `<namespace>__<name>`, a
freeform tool as a function with one string argument.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from rollout.gateway.dialects.fields import need, objects, optional, unsupported
from rollout.types import JsonObject

__all__ = ["Tool", "ToolNames", "freeform_arguments", "freeform_input"]

LONGEST = 64
"""What OpenAI and most servers allow for a function's name."""

ARGUMENT = "input"
NO_ARGUMENTS: JsonObject = {"type": "object", "properties": {}}
FREEFORM: JsonObject = {
    "type": "object",
    "properties": {ARGUMENT: {"type": "string", "description": "The whole freeform input."}},
    "required": [ARGUMENT],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Tool:
    """A tool as the harness knows it."""

    name: str
    namespace: str = ""
    freeform: bool = False


class ToolNames:
    """The names that the model sees, one for each tool of a request."""

    def __init__(self) -> None:
        self._flat: dict[tuple[str, str], str] = {}
        self._tools: dict[str, Tool] = {}

    def add(self, tool: Tool) -> str:
        """Name a tool. What is too long, or taken, gets a hash of the full name."""
        flat = self.flat(tool.name, tool.namespace)
        if flat in self._tools:
            flat = _hashed(flat, f"{tool.namespace}/{tool.name}")
        self._flat[tool.namespace, tool.name] = flat
        self._tools[flat] = tool
        return flat

    def flat(self, name: str, namespace: str) -> str:
        """The name of a tool, even of one that this request does not offer but its history has."""
        known = self._flat.get((namespace, name))
        full = f"{namespace}__{name}" if namespace else name
        return known or (full if len(full) <= LONGEST else _hashed(full, full))

    def tool(self, flat: str) -> Tool:
        """The tool of a name; one that the model made up is passed on as it is."""
        return self._tools.get(flat) or Tool(flat)

    def functions(self, tools: list[Any], where: str) -> Iterator[JsonObject]:
        """Chat functions for a request's tools, in order. Tools hosted by the server are left out."""
        for path, tool in objects(tools, where):
            kind = need(tool, "type", str, path)
            if kind == "namespace":
                yield from self._namespace(tool, path)
            elif kind in ("function", "custom"):
                yield self._function(tool, path)

    def _namespace(self, namespace: JsonObject, where: str) -> Iterator[JsonObject]:
        """A namespace's tools. Its description (an MCP server's instructions) goes to the first."""
        name = need(namespace, "name", str, where)
        description = optional(namespace, "description", str, where) or ""
        if description == f"Tools in the {name} namespace.":  # Codex, when the server says nothing
            description = ""
        for path, tool in objects(need(namespace, "tools", list, where), f"{where}.tools"):
            if need(tool, "type", str, path) not in ("function", "custom"):
                raise unsupported(tool["type"], path, "type")
            yield self._function(tool, path, name, description)
            description = ""

    def _function(
        self, tool: JsonObject, where: str, namespace: str = "", preface: str = ""
    ) -> JsonObject:
        freeform = tool["type"] == "custom"
        texts = [preface, optional(tool, "description", str, where) or ""]
        parameters = FREEFORM
        if freeform:
            texts.append(_grammar(optional(tool, "format", dict, where) or {}))
        else:
            parameters = optional(tool, "parameters", dict, where) or NO_ARGUMENTS
        function: JsonObject = {
            "name": self.add(Tool(need(tool, "name", str, where), namespace, freeform)),
            "description": "\n\n".join(filter(None, texts)),
            "parameters": parameters,
        }
        if tool.get("strict"):
            function["strict"] = True
        return {"type": "function", "function": function}


def freeform_arguments(text: str) -> str:
    """The arguments with which the model is seen to have called a freeform tool."""
    return json.dumps({ARGUMENT: text}, ensure_ascii=False)


def freeform_input(arguments: str) -> str:
    """The text for a freeform tool. Arguments that are not just that text are passed on as they are."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return arguments
    match value:
        case {"input": str(text)} if len(value) == 1:
            return text
    return arguments


def _grammar(form: JsonObject) -> str:
    if form.get("type") != "grammar":
        return ""
    return (
        f"The input must match this {form.get('syntax', '')} grammar:\n{form.get('definition', '')}"
    )


def _hashed(name: str, full: str) -> str:
    digest = hashlib.blake2b(full.encode(), digest_size=4).hexdigest()
    return f"{name[: LONGEST - len(digest) - 1]}_{digest}"
