"""A tiny environment, a fake model and scriptable in-process harnesses, for tests of the core."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from rollout.environment import Environment, Surface, World
from rollout.errors import EnvironmentFault, JudgeError
from rollout.gateway.upstream import ModelReply, ModelRequest, Upstream
from rollout.harness import Finish, Harness, Job
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import (
    Grade,
    JsonObject,
    Solution,
    Step,
    Task,
    ToolReply,
    ToolSpec,
    Trace,
    Usage,
)

ADD = ToolSpec(
    name="notes_add",
    description="Save a note",
    group="notes",
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
)


def note_task(name: str = "milk", **fields: Any) -> Task:
    """Save a note that says the task's name."""
    solution = Solution(
        name="reference",
        steps=(Step(call="notes_add", arguments={"text": name}),),
        answer=f"Saved {name}.",
    )
    return Task(
        **{
            "id": name,
            "prompt": f"Save a note: {name}",
            "tools": (ADD,),
            "reference": solution,
            "wrong": (Solution(name="nothing", answer="Done."),),
            **fields,
        }
    )


class NoSandbox(Sandbox):
    """For worlds that have no business in one."""

    gateway, workspace, home = "", "/workspace", "/home/agent"

    async def write(self, files: Mapping[str, bytes | str]) -> None:
        raise AssertionError("nothing is to be written")

    async def read(self, path: str) -> bytes | None:
        raise AssertionError("nothing is to be read")

    async def exec(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None
    ) -> ExecResult:
        raise AssertionError("nothing is to be run")


class NotesWorld(World):
    def __init__(self, task: Task) -> None:
        self.surface = Surface(prompt=task.prompt, tools=task.tools)
        self.notes: list[str] = []

    async def call(self, name: str, arguments: Any) -> ToolReply:
        if name != "notes_add":
            return await super().call(name, arguments)
        if arguments.get("text") == "explode":
            raise RuntimeError("the notebook is on fire")
        self.notes.append(arguments["text"])
        return ToolReply(body={"saved": len(self.notes)})

    async def snapshot(self, sandbox: Sandbox) -> JsonObject:
        return {"notes": self.notes}


class Notes(Environment):
    """Passes when the note is there. `broken` names the stage that fails."""

    def __init__(self, broken: str = "") -> None:
        self.broken = broken

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        if self.broken == "open":
            raise OSError("no paper")
        yield NotesWorld(task)

    async def grade(self, task: Task, trace: Trace, judge: Any = None) -> Grade:
        if self.broken == "grade":
            raise EnvironmentFault("no red pen")
        if self.broken == "judge":
            raise JudgeError("the judge is asleep")
        if self.broken == "score":
            return Grade(score=float("nan"), passed=False)
        passed = task.id in trace.world["notes"]
        return Grade(score=float(passed), passed=passed, notes=() if passed else ("no note",))


class Fake(Upstream):
    """Answers "ok", or raises what it is given."""

    model = "fake"

    def __init__(
        self, error: Exception | None = None, hang: bool = False, text: str = "ok"
    ) -> None:
        self.error, self.hang, self.text = error, hang, text

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.hang:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        message = {"role": "assistant", "content": self.text}
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return ModelReply(body=body, usage=Usage(prompt=10, completion=2), finish="stop")


Act = Callable[[Job], Awaitable[str]]


class Acting(Harness):
    """Does what the test says."""

    dialect = "chat"
    surfaces = ("native",)

    def __init__(self, act: Act) -> None:
        super().__init__()
        self.act = act

    async def run(self, job: Job, sandbox: Sandbox) -> Finish:
        return Finish(answer=await self.act(job))


async def ask(job: Job, text: str = "hello") -> tuple[int, Any]:
    """One model call of a harness; status and body."""
    async with aiohttp.ClientSession() as client:
        async with client.post(
            f"{job.endpoint.model_url}/chat/completions",
            json={"model": job.endpoint.model, "messages": [{"role": "user", "content": text}]},
            headers={"Authorization": f"Bearer {job.endpoint.key}"},
        ) as reply:
            return reply.status, await reply.json()


async def save_note(job: Job) -> str:
    """Ask the model once, then save the right note."""
    await ask(job)
    assert job.call_tool is not None
    await job.call_tool("notes_add", {"text": job.prompt.removeprefix("Save a note: ")})
    return "saved"
