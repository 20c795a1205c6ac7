"""A plain ReAct loop (arxiv.org/abs/2210.03629), in process: think, call tools, read what they return.

The prompt format, all of it:

    system      PROMPT, ALONE unless a user replies, and on the `skill` surface the list of skills:
                name, description, path
    user        the task's prompt
    assistant   as the model server returned it, reasoning included: its chat template decides what
                of that the model sees again
    tool        one message a call, in the order of the calls, with the tool's reply as JSON; on the
                `skill` surface what the command printed
    user        the pictures that the tools showed, where they did: most servers take nothing but text
                in a tool message, so `[attachment 1]` stands for the first of them there

Calls of one turn run at the same time. A turn without a tool call is the final answer; where a user
replies to it, the reply is a user message and the loop goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass

import httpx2
import msgspec
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ContentBlock

from harness_wrappers._chat import MAX_TURNS, certificates, client, converse
from rollout.errors import HarnessError
from rollout.gateway.dialects.history import History, text_part
from rollout.harness import Finish, Harness, Job
from rollout.jsontext import read_json
from rollout.pictures import data_url
from rollout.sandbox import Sandbox
from rollout.types import JsonObject, ToolSurface

__all__ = ["ALONE", "PROMPT", "React"]

PROMPT = """\
You are an agent that does the user's task with the tools you are given.

Work in steps: think about what is needed next, call one or more tools, and read what they return \
before you go on. A tool may answer with an error: read it, then correct the call or try another way.

When the task is done, or turns out to be impossible, write your final answer to the user without \
calling a tool."""

ALONE = " Nobody answers questions in between."
"""Follows PROMPT unless a user replies to answers."""

SKILLS = """

## Skills

These files describe the services you can use. Read a file with `cat` before you use its service.
"""

BASH: JsonObject = {
    "name": "bash",
    "description": "Run a command with bash. Returns what it prints, and its exit code if not 0.",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}

OUTPUT_LIMIT = 40_000
"""Characters of a command's output that the model gets to see; the middle is left out."""


@dataclass(frozen=True)
class _Tools:
    """A surface, opened."""

    functions: list[JsonObject]
    call: Callable[[str, JsonObject], Awaitable[list[JsonObject]]]
    """Dispatches a call; its reply as the parts of a chat message."""
    instructions: str = ""


class React(Harness):
    """The loop. Needs no program, and a sandbox on the `skill` surface only."""

    dialect = "chat"
    surfaces = ("native", "mcp", "skill")
    converses = True

    async def run(self, job: Job, sandbox: Sandbox) -> Finish:
        async with _tools(job, sandbox) as tools, client(job.endpoint) as model:

            async def turn(message: JsonObject) -> list[JsonObject]:
                said = {key: value for key, value in message.items() if value is not None}
                return [said, *await _answers(message.get("tool_calls") or [], tools)]

            return await converse(job, model, _instructions(job, tools), turn, tools.functions)

    def has_shell(self, surface: ToolSurface) -> bool:
        return surface == "skill"

    def fingerprint(self) -> JsonObject:
        return {"prompt": PROMPT + ALONE, "max_turns": MAX_TURNS, "output_limit": OUTPUT_LIMIT}


def _instructions(job: Job, tools: _Tools) -> str:
    return PROMPT + ("" if job.reply else ALONE) + tools.instructions


async def _answers(calls: list[JsonObject], tools: _Tools) -> list[JsonObject]:
    """What one turn's calls bring. They run at the same time, and end together."""
    running = [asyncio.create_task(_answer(call, tools)) for call in calls]
    try:
        replies = await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
    told = History()
    for call, reply in zip(calls, replies, strict=True):
        told.tool(call["id"], reply)
    return told.finish()


async def _answer(call: JsonObject, tools: _Tools) -> list[JsonObject]:
    """A tool's reply, or what is wrong with the call."""
    function = call["function"]
    try:
        arguments = read_json(function["arguments"] or "{}")
    except ValueError as error:
        return [text_part(f"Error: the arguments are not valid JSON: {error}")]
    if not isinstance(arguments, dict):
        return [text_part("Error: the arguments must be a JSON object")]
    return await tools.call(function["name"], arguments)


def _tools(job: Job, sandbox: Sandbox) -> AbstractAsyncContextManager[_Tools]:
    if job.surface == "native":
        return _native(job)
    return _mcp(job) if job.surface == "mcp" else _skill(job, sandbox)


@asynccontextmanager
async def _native(job: Job) -> AsyncIterator[_Tools]:
    dispatch = job.call_tool
    if dispatch is None:
        raise HarnessError("the native surface needs Job.call_tool")

    async def call(name: str, arguments: JsonObject) -> list[JsonObject]:
        reply = await dispatch(name, arguments)
        pictures = [_picture(data_url(image)) for image in reply.images]
        return [text_part(msgspec.json.encode(reply.body).decode()), *pictures]

    functions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
        for tool in job.tools
    ]
    yield _Tools(functions, call)


@asynccontextmanager
async def _mcp(job: Job) -> AsyncIterator[_Tools]:
    http = httpx2.AsyncClient(verify=certificates(), trust_env=False, timeout=None)
    transport = streamable_http_client(
        job.endpoint.mcp_url, http_client=http, terminate_on_close=False
    )
    with _ungrouped():
        async with http, Client(transport, mode="legacy") as client:
            yield await _offered(client)


async def _offered(client: Client) -> _Tools:
    async def call(name: str, arguments: JsonObject) -> list[JsonObject]:
        content = (await client.call_tool(name, arguments)).content
        return [part for block in content for part in _parts(block)]

    functions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
        for tool in (await client.list_tools()).tools
    ]
    return _Tools(functions, call)


def _parts(block: ContentBlock) -> list[JsonObject]:
    """A block of an MCP result; what is neither text nor a picture is left out."""
    if block.type == "text":
        return [text_part(block.text)]
    if block.type == "image":
        return [_picture(f"data:{block.mime_type};base64,{block.data}")]
    return []


def _picture(url: str) -> JsonObject:
    return {"type": "image_url", "image_url": {"url": url}}


@contextmanager
def _ungrouped() -> Iterator[None]:
    """The MCP client's task groups wrap whatever goes wrong inside them, ours included."""
    try:
        yield
    except ExceptionGroup as group:
        error: Exception = group
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from None


@asynccontextmanager
async def _skill(job: Job, sandbox: Sandbox) -> AsyncIterator[_Tools]:
    paths = {f"{sandbox.home}/.skills/{path}": text for path, text in job.skills.items()}
    await sandbox.write(paths)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": sandbox.home, "LANG": "C.UTF-8"}

    async def call(name: str, arguments: JsonObject) -> list[JsonObject]:
        command = arguments.get("command")
        if name != BASH["name"] or not isinstance(command, str):
            wrong = f"Error: the only tool is {BASH['name']}, and it needs a command"
            return [text_part(wrong)]
        result = await sandbox.exec(("bash", "-c", command), env=env, cwd=sandbox.workspace)
        text = (result.stdout + result.stderr).decode(errors="replace")
        code = f"\n(exit code {result.exit_code})" if result.exit_code else ""
        return [text_part(_shortened(text) + code)]

    listed = "".join(f"- {_described(text)} (file: {path})\n" for path, text in paths.items())
    yield _Tools([BASH], call, SKILLS + listed if listed else "")


def _described(skill: str) -> str:
    front = yaml.safe_load(skill.split("---\n")[1])
    return f"{front['name']}: {front['description']}"


def _shortened(text: str) -> str:
    if len(text) <= OUTPUT_LIMIT:
        return text
    half, left_out = OUTPUT_LIMIT // 2, len(text) - OUTPUT_LIMIT
    return f"{text[:half]}\n[{left_out} characters left out]\n{text[-half:]}"
