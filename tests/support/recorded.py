"""Runs written by hand: manifests and episodes of which every figure is known."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rollout.manifest import Code, Manifest
from rollout.store import EpisodeStore
from rollout.types import (
    Call,
    Episode,
    Grade,
    JsonObject,
    Outcome,
    Timing,
    ToolCall,
    Trace,
    Usage,
)

__all__ = ["attempt", "manifest", "model_call", "record", "tool"]

CODE = Code(version="1", commit="c0ffee")


def manifest(tasks: Sequence[str], /, attempts: int = 3, **fields: Any) -> Manifest:
    return Manifest(
        **{
            "suite": {"name": "nowhere", "data": "built-in"},
            "tasks": {task: f"hash of {task}" for task in tasks},
            "harness": {"name": "react", "preset": "default"},
            "tools": "native",
            "model": {"model": "m"},
            "seed": 0,
            "attempts": attempts,
            "code": CODE,
            **fields,
        }
    )


def attempt(task: str, number: int, what: str = "passed", **fields: Any) -> Episode:
    """An attempt that ended as `what` says: an outcome, or `outcome:cause`."""
    outcome, _, cause = what.partition(":")
    passed = outcome == "passed"
    graded = Outcome(outcome).graded
    return Episode(
        **{
            "id": f"{task}#{number}",
            "task_id": task,
            "attempt": number,
            "outcome": Outcome(outcome),
            "cause": cause,
            "grade": Grade(score=float(passed), passed=passed) if graded else None,
            "usage": Usage(prompt=900, completion=100),
            "timing": Timing(total=10.0, setup=1.0, model=4.0, tools=2.0, grading=0.5),
            "calls": 2,
            "tool_calls": 1,
            **fields,
        }
    )


def record(
    folder: Path,
    outcomes: Mapping[str, Sequence[str]],
    traces: Mapping[str, Trace] | None = None,
    **fields: Any,
) -> Path:
    """A run whose attempts ended as said: task -> one outcome an attempt. Traces by episode id."""
    attempts = max(map(len, outcomes.values()), default=1)
    folder.mkdir(parents=True)
    manifest(list(outcomes), **{"attempts": attempts, **fields}).write(folder)
    episodes = [
        attempt(task, number, what)
        for task, ends in outcomes.items()
        for number, what in enumerate(ends)
    ]
    asyncio.run(_store(folder, episodes, traces or {}))
    return folder


async def _store(folder: Path, episodes: Sequence[Episode], traces: Mapping[str, Trace]) -> None:
    with EpisodeStore.create(folder) as store:
        for episode in episodes:
            await store.append(episode, traces.get(episode.id, Trace()))


def tool(
    name: str, arguments: JsonObject | None = None, reply: Any = None, status: int = 200
) -> ToolCall:
    return ToolCall(
        index=0, name=name, arguments=arguments or {}, status=status, reply=reply, surface="native"
    )


def model_call(
    *called: tuple[str, str],
    offered: Sequence[str] = (),
    dialect: str = "chat",
    n: int = 0,
    **fields: Any,
) -> Call:
    """A model call that was answered with calls of functions: (name, arguments as JSON)."""
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(called)
    ]
    tools: list[JsonObject] = [{"type": "function", "function": {"name": name}} for name in offered]
    reply: JsonObject = {"choices": [{"message": {"role": "assistant", "tool_calls": calls}}]}
    if dialect == "messages":
        tools = [{"name": name} for name in offered]
        reply = {
            "content": [
                {
                    "type": "tool_use",
                    "id": "c",
                    "name": name,
                    "input": msgspec.json.decode(arguments),
                }
                for name, arguments in called
            ]
        }
    elif dialect == "responses":
        tools = [{"type": "function", "name": name} for name in offered]
        reply = {
            "output": [
                {"type": "function_call", "name": name, "arguments": arguments}
                for name, arguments in called
            ]
        }
    request = {"messages": [{"role": "user", "content": f"go {n}"}], "tools": tools}
    return Call(
        **{
            "index": n,
            "dialect": dialect,
            "kind": "main",
            "request": msgspec.json.encode(request),
            "reply": msgspec.json.encode(reply),
            **fields,
        }
    )
