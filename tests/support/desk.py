"""A mail desk, for tests of harnesses: two services, a fault, long and non-ASCII texts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from rollout.environment import Environment, Surface, World
from rollout.episode import Setup, run_episode
from rollout.gateway.server import Gateway
from rollout.gateway.upstream import ModelReply, ModelRequest, Upstream
from rollout.harness import Harness
from rollout.sandbox import Sandbox, SandboxProvider
from rollout.types import (
    Episode,
    Grade,
    JsonObject,
    Solution,
    Step,
    Task,
    ToolReply,
    ToolSpec,
    ToolSurface,
    Trace,
    Usage,
)

__all__ = ["BODY", "TASK", "Desk", "Scripted", "attempt", "call", "say"]

BODY = """It's "quoted": $HOME `x` \\n\n李雷, Zoë"""

TASK = Task(
    id="desk",
    prompt="Answer the first mail, and note the time.",
    tools=(
        ToolSpec(name="mail_list", description="List mails.", group="mail"),
        ToolSpec(
            name="mail_send",
            description="Send a mail.",
            group="mail",
            input_schema={
                "type": "object",
                "properties": {"to": {"type": "string"}, "body": {"type": "string"}},
                "required": ["to", "body"],
            },
        ),
        ToolSpec(name="clock_now", description="The time.", group="clock"),
    ),
    reference=Solution(
        name="reference",
        steps=(
            Step(call="mail_list"),
            Step(call="clock_now"),
            Step(call="mail_send", arguments={"to": "{{1.items.0.from}}", "body": BODY}, retry=2),
        ),
        answer="Sent at {{2.now}} as {{3.id}}: 好的",
    ),
    wrong=(Solution(name="lazy", answer="Done."),),
)

LONG = "x" * 20_000
"""Codex shows models that it does not know no more than 10 KB of a tool's output."""


class DeskWorld(World):
    def __init__(self, task: Task) -> None:
        self.surface = Surface(prompt=task.prompt, tools=task.tools)
        self.sent: list[Any] = []
        self.tries = 0

    async def call(self, name: str, arguments: Any) -> ToolReply:
        if name == "mail_list":
            return ToolReply(body={"items": [{"from": "李@x.org", "text": LONG}]})
        if name == "clock_now":
            return ToolReply(body={"now": "09:00"})
        if name != "mail_send":
            return await super().call(name, arguments)
        self.tries += 1
        if self.tries == 1:
            return ToolReply(status=429, body={"error": "rate limit exceeded"})
        self.sent.append(arguments)
        return ToolReply(body={"id": len(self.sent)})

    async def snapshot(self, sandbox: Sandbox) -> JsonObject:
        return {"sent": self.sent}


class Desk(Environment):
    """Passes when the one right mail was sent."""

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        yield DeskWorld(task)

    async def grade(self, task: Task, trace: Trace, judge: Any = None) -> Grade:
        passed = trace.world["sent"] == [{"to": "李@x.org", "body": BODY}]
        return Grade(score=float(passed), passed=passed)


class TalkingDesk(Desk):
    """A user sits at it, who says these things and is then content."""

    def __init__(self, *replies: str) -> None:
        self.replies = replies
        self.heard: list[str] = []

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        replies, heard = iter(self.replies), self.heard

        class Talking(DeskWorld):
            async def reply(self, answer: str) -> str | None:
                heard.append(answer)
                return next(replies, None)

        world = Talking(task)
        world.surface = replace(world.surface, user=True)
        yield world


Turn = JsonObject | Exception | Callable[[ModelRequest], JsonObject]


class Scripted(Upstream):
    """Answers with these messages in turn, and keeps the requests."""

    model = "scripted"

    def __init__(self, turns: Sequence[Turn], finish: str = "", usage: Usage | None = None) -> None:
        self._turns = list(turns)
        self._finish = finish
        self._usage = usage or Usage(prompt=10, completion=2)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        turn = self._turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        message = turn(request) if callable(turn) else turn
        finish = self._finish or ("tool_calls" if message.get("tool_calls") else "stop")
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        counts = {
            "prompt_tokens": self._usage.prompt,
            "completion_tokens": self._usage.completion,
            "total_tokens": self._usage.prompt + self._usage.completion,
        }
        body = {"id": "c", "object": "chat.completion", "choices": [choice], "usage": counts}
        return ModelReply(body=body, usage=self._usage, finish=finish)


def say(text: str) -> JsonObject:
    return {"content": text}


def call(*functions: tuple[str, str]) -> JsonObject:
    """A message that calls functions: (name, arguments as the model wrote them)."""
    return {
        "content": None,
        "tool_calls": [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": text}}
            for n, (name, text) in enumerate(functions)
        ],
    }


async def attempt(
    harness: Harness,
    upstream: Upstream,
    surface: ToolSurface,
    sandboxes: SandboxProvider,
    task: Task = TASK,
    environment: Environment | None = None,
) -> tuple[Episode, Trace]:
    """One episode at the desk."""
    async with Gateway(upstream) as gateway:
        setup = Setup(environment or Desk(), harness, gateway, sandboxes, surface)
        return await run_episode(setup, task, 0)
