"""A session's tools, as REST, as MCP and as SKILL.md folders; all three end in `Session.call_tool`.

Arguments are forwarded as they came: a tool's own 422 is something that an agent can recover from.

The MCP server is our own JSON-RPC handler: stateless streamable HTTP with plain JSON replies
(modelcontextprotocol.io/specification/2025-11-25/basic/transports). The official SDK's low-level server
took 0.34 ms of CPU for a call in process where this takes 0.007 ms, and it wants an ASGI server beside
the gateway's; the tests hold this one against the official SDK's client.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec
from aiohttp import web

from rollout.jsontext import read_json
from rollout.types import Image, JsonObject, Task, ToolReply, ToolSpec, ToolSurface

__all__ = ["PROTOCOL_VERSIONS", "ToolSession", "grouped", "handle_mcp", "handle_rest", "skills"]

PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""MCP revisions that begin with the `initialize` handshake, newest first."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602

BATCH = 1000
"""Messages: of a million pings the gateway would be out of breath for all episodes."""

DESCRIPTION_LIMIT = 1024
"""Characters of a skill's description (agentskills.io/specification)."""


class ToolSession(Protocol):
    """What is needed of `rollout.gateway.session.Session`."""

    tools_listed: bool

    @property
    def task(self) -> Task: ...
    @property
    def surface(self) -> ToolSurface: ...
    async def read(self, request: web.Request) -> bytes:
        """A request's body."""
        ...

    async def call_tool(self, name: str, arguments: Any, surface: ToolSurface) -> ToolReply:
        """Dispatch and record one call."""
        ...


async def handle_rest(request: web.Request, session: ToolSession) -> web.Response:
    """`POST /tools/<name>` with the arguments as JSON; `GET /tools` lists the names.

    Answers with the tool's own status and body. No body means no arguments. A GET of a tool is refused:
    query strings would make every argument a string.
    """
    name = request.match_info.get("name", "")
    if session.surface != "skill":
        return _elsewhere(session)
    if not name:
        return _json({"tools": [tool.name for tool in session.task.tools]})
    if request.method != "POST":
        return _json({"error": f"POST the arguments of {name} as a JSON body"}, 405)
    try:
        arguments = read_json(await session.read(request) or b"{}")
    except ValueError as error:
        return _json({"error": f"the body is not valid JSON: {error}", "hint": QUOTING}, 400)
    reply = await session.call_tool(name, arguments, "skill")
    return _json(reply.body, reply.status)


async def handle_mcp(request: web.Request, session: ToolSession) -> web.Response:
    """One MCP message (or, for 2025-03-26 clients, a batch). GET and DELETE: there is no stream."""
    if session.surface != "mcp":
        return _elsewhere(session)
    if request.method != "POST":
        return web.Response(status=405, headers={"Allow": "POST"})
    version = request.headers.get("MCP-Protocol-Version", PROTOCOL_VERSIONS[0])
    if version not in PROTOCOL_VERSIONS:
        known = ", ".join(PROTOCOL_VERSIONS)
        text = f"protocol version {version} is not served; known: {known}"
        return _json(_error(None, INVALID_REQUEST, text), 400)
    try:
        message = read_json(await session.read(request))
    except ValueError as error:
        return _json(_error(None, PARSE_ERROR, f"not JSON: {error}"), 400)
    if isinstance(message, list):
        if len(message) > BATCH:
            text = f"a batch has {BATCH} messages at most, this one {len(message)}"
            return _json(_error(None, INVALID_REQUEST, text), 400)
        answers = await asyncio.gather(*(_answer(item, session) for item in message))
        answer: Any = [item for item in answers if item is not None]
    else:
        answer = await _answer(message, session)
    return _json(answer) if answer else web.Response(status=202)


async def _answer(message: Any, session: ToolSession) -> JsonObject | None:
    """The JSON-RPC answer to one message; None for a notification or a response."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return _error(None, INVALID_REQUEST, "not a JSON-RPC 2.0 message")
    method, number = message.get("method"), message.get("id")
    if method is None or number is None:
        return None
    if not isinstance(number, str | int | float):
        return _error(None, INVALID_REQUEST, "id must be a string or a number")
    params = message.get("params") or {}
    if not isinstance(params, dict):
        return _error(number, INVALID_PARAMS, "params must be an object")
    if method == "initialize":
        return _result(number, _initialize(params))
    if method == "ping":
        return _result(number, {})
    if method == "tools/list":
        session.tools_listed = True
        return _result(number, {"tools": [_listed(tool) for tool in session.task.tools]})
    if method != "tools/call":
        return _error(number, METHOD_NOT_FOUND, f"no method {method!r}")
    if not isinstance(params.get("name"), str):
        return _error(number, INVALID_PARAMS, "params.name must be the tool's name")
    arguments = params.get("arguments")
    reply = await session.call_tool(params["name"], {} if arguments is None else arguments, "mcp")
    return _result(number, _called(reply))


def _initialize(params: JsonObject) -> JsonObject:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "tools", "version": "1.0.0"},
    }


def _listed(tool: ToolSpec) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {"type": "object", **tool.input_schema},
    }


def _called(reply: ToolReply) -> JsonObject:
    text = {"type": "text", "text": msgspec.json.encode(reply.body).decode()}
    return {"content": [text, *map(_pictured, reply.images)], "isError": not reply.ok}


def _pictured(image: Image) -> JsonObject:
    return {
        "type": "image",
        "data": b64encode(image.data).decode(),
        "mimeType": image.media_type,
    }


def _result(number: Any, result: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: Any, code: int, text: str) -> JsonObject:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def _elsewhere(session: ToolSession) -> web.Response:
    """Tools answer on one surface only, so that what is measured is that surface."""
    return _json({"error": f"this task's tools are offered as {session.surface} only"}, 404)


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(body), status=status, content_type="application/json"
    )


QUOTING = (
    "Put the JSON between <<'JSON' and a line that is only JSON: the shell then changes nothing in "
    "it, so quotes, $ and non-ASCII text need no escaping beyond JSON's own."
)

SKILL = """\
---
name: {name}
description: {description}
---

# {name}

Each tool is an HTTP endpoint: POST its arguments as one JSON object. The last line that the command
prints is the HTTP status, everything before it is the JSON reply; 400 and above is an error whose
body says what went wrong.

{quoting}

{tools}
"""

TOOL = """\
## {name}

{description}

{arguments}

```bash
curl -sS -X POST -H 'Content-Type: application/json' -w '\\n%{{http_code}}\\n' \\
  {url}/{name} --data-binary @- <<'JSON'
{example}
JSON
```
"""


def skills(tools: Sequence[ToolSpec], tools_url: str) -> dict[str, str]:
    """`<group>/SKILL.md` -> text: how to call a group's tools (agentskills.io/specification)."""
    return {
        f"{name}/SKILL.md": _skill(name, found, tools_url) for name, found in grouped(tools).items()
    }


def grouped(tools: Iterable[ToolSpec]) -> dict[str, list[ToolSpec]]:
    """The tools of each skill, by the skill's name (agentskills.io/specification#name-field)."""
    groups: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        name = re.sub(r"[^a-z0-9]+", "-", tool.group.lower()).strip("-") or "tools"
        groups.setdefault(name, []).append(tool)
    return groups


def _skill(name: str, tools: Sequence[ToolSpec], url: str) -> str:
    names = ", ".join(tool.name for tool in tools)
    description = f"How to call the {name} tools with curl: {names}"[:DESCRIPTION_LIMIT]
    return SKILL.format(
        name=name,
        description=json.dumps(description, ensure_ascii=False),
        quoting=QUOTING,
        tools="\n".join(_section(tool, url) for tool in tools),
    )


def _section(tool: ToolSpec, url: str) -> str:
    properties: dict[str, JsonObject] = tool.input_schema.get("properties", {})
    required = tool.input_schema.get("required", ())
    shown = {key: schema for key, schema in properties.items() if key in required} or properties
    return TOOL.format(
        name=tool.name,
        description=tool.description.strip() or "No description.",
        arguments="\n".join(_arguments(properties, required)) or "No arguments.",
        url=url,
        example=json.dumps(
            {key: _example(key, schema) for key, schema in shown.items()}, ensure_ascii=False
        ),
    )


def _arguments(properties: dict[str, JsonObject], required: Iterable[str]) -> Iterable[str]:
    for name, schema in properties.items():
        need = "required" if name in required else "optional"
        rest = {key: value for key, value in schema.items() if key not in ("type", "description")}
        line = f"- `{name}` ({schema.get('type', 'any')}, {need})"
        if schema.get("description"):
            line += f": {schema['description']}"
        yield line + (f" Schema: `{json.dumps(rest, ensure_ascii=False)}`" if rest else "")


def _example(name: str, schema: JsonObject) -> Any:
    """A value of the right type, to be replaced."""
    if "default" in schema or schema.get("enum"):
        return schema.get("default", (schema.get("enum") or [None])[0])
    kinds = schema.get("type", "string")
    kind = kinds if isinstance(kinds, str) else next(iter(kinds), "string")
    values = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}, "null": None}
    return values.get(kind, f"<{name}>")
