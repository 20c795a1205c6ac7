"""Scripted solutions played directly against a world: no harness, no gateway, no sandbox."""

from __future__ import annotations

from typing import Any

from support.toys import NoSandbox

from rollout.environment import Environment
from rollout.gateway.upstreams._script import play
from rollout.types import Grade, Solution, Task, ToolCall, ToolReply, Trace

__all__ = ["played", "reference"]


async def played(
    environment: Environment, task: Task, solution: Solution, seed: int = 0
) -> tuple[Grade, Trace]:
    """The grade of a solution in a fresh world, and what it left behind."""
    calls: list[ToolCall] = []
    async with environment.open(task, seed) as world:

        async def call(name: str, arguments: Any) -> ToolReply:
            reply = await world.call(name, arguments)
            calls.append(
                ToolCall(
                    index=len(calls),
                    name=name,
                    arguments=arguments,
                    status=reply.status,
                    reply=reply.body,
                    surface="native",
                )
            )
            return reply

        answer = await play(solution, call, world.locate)
        left = await world.snapshot(NoSandbox())
    trace = Trace(tool_calls=tuple(calls), answer=answer, world=left)
    return await environment.grade(task, trace), trace


def reference(task: Task) -> Solution:
    """Its reference solution, which must be there."""
    assert task.reference is not None
    return task.reference
