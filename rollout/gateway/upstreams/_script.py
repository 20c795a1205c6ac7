"""The interpreter of scripted solutions: what a `Solution` does next, given what it has seen so far.

Pure but for `Targets`: the state is the history alone, so a policy that only sees a conversation can
play a solution from any point of it. `types.Step` documents the syntax.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollout.types import JsonObject, Solution, Step, ToolReply

__all__ = [
    "History",
    "Locate",
    "Place",
    "Targets",
    "failed",
    "next_action",
    "play",
    "resolve",
    "step_at",
]

Locate = Callable[[str], Awaitable[JsonObject]]
"""`World.locate`."""

History = Sequence[tuple[str, ToolReply]]
"""Tool calls made so far, in order: bare tool name and reply."""

ROUNDS = 3
"""How often one step's `expect` may send the solution back."""

TARGET = re.compile(r"\{\{\s*at:(.+)\|\s*(\w+)\s*\}\}", re.S)
REFERENCE = re.compile(r"\{\{\s*(\d+)((?:\.[^{}.]+)*)\s*\}\}")
MISSING = object()


@dataclass(frozen=True)
class Place:
    """Where a solution stands."""

    position: int = 0
    """The step that is due, counted from 0."""
    tries: int = 0
    """How often it has failed so far."""
    rounds: Mapping[int, int] = field(default_factory=dict)
    """How often each position's `expect` has sent the solution back."""

    def after(self, steps: Sequence[Step], reply: ToolReply) -> Place:
        """The place after the due step got this reply."""
        step, at = steps[self.position], self.position
        if failed(reply) and self.tries < step.retry:
            return Place(at, self.tries + 1, self.rounds)
        rounds = self.rounds.get(at, 0)
        if _holds(step.expect, reply.body) or rounds >= ROUNDS:
            return Place(at + 1, 0, self.rounds)
        return Place(max(0, at - step.back), 0, {**self.rounds, at: rounds + 1})


def next_action(solution: Solution, history: History) -> Step | str:
    """The step to take next, with its references resolved, or the final answer.

    Calls in `history` that are not the awaited step's are skipped: the harness's own doing.
    """
    place, replies = Place(), dict[int, ToolReply]()
    for name, reply in history:
        if place.position < len(solution.steps) and name == solution.steps[place.position].call:
            replies[place.position + 1] = reply
            place = place.after(solution.steps, reply)
    return step_at(solution, place, replies)


def step_at(solution: Solution, place: Place, replies: Mapping[int, ToolReply]) -> Step | str:
    """What is due at a place: as `next_action` has it, from the latest reply to each step."""
    if place.position >= len(solution.steps):
        return _text(resolve(solution.answer, replies))
    step = solution.steps[place.position]
    return Step(call=step.call, arguments=resolve(step.arguments, replies))


async def play(
    solution: Solution,
    call: Callable[[str, Any], Awaitable[ToolReply]],
    locate: Locate | None = None,
) -> str:
    """Play a solution directly against a world's `call`; the final answer."""
    history: list[tuple[str, ToolReply]] = []
    while isinstance(action := next_action(solution, history), Step):
        arguments = await Targets(locate).resolve(action.arguments)
        history.append((action.call, await call(action.call, arguments)))
    return action


class Targets:
    """Replaces `{{at:TARGET|FIELD}}` by what `World.locate` says now, each target asked for once."""

    def __init__(self, locate: Locate | None) -> None:
        self._locate = locate
        self._found: dict[str, JsonObject] = {}
        self.absent: list[str] = []
        """Targets that are not there."""

    async def resolve(self, value: Any) -> Any:
        """`value` with the places of its targets; text says so where one is absent."""
        if isinstance(value, dict):
            return {key: await self.resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [await self.resolve(item) for item in value]
        match = TARGET.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return value
        target, name = match[1].strip(), match[2]
        found = await self._at(target)
        return found.get(name, f"[nothing at {target}]")

    async def _at(self, target: str) -> JsonObject:
        if target not in self._found:
            try:
                found = await self._locate(target) if self._locate else {}
            except LookupError:
                found = {}
            self._found[target] = found
            if not found:
                self.absent.append(target)
        return self._found[target]


def failed(reply: ToolReply) -> bool:
    """Whether a reply is an error: by its status, or by an `error` in a body that came with 200."""
    return not reply.ok or (isinstance(reply.body, dict) and bool(reply.body.get("error")))


def resolve(value: Any, replies: Mapping[int, ToolReply]) -> Any:
    """`value` with every `{{N.path}}` in its strings replaced from the reply to step N.

    A string that is one reference takes the value with its type. What is not there becomes text that
    says so: a scripted policy must be seen to fail, not crash its episode.
    """
    if isinstance(value, dict):
        return {key: resolve(item, replies) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, replies) for item in value]
    if not isinstance(value, str):
        return value
    if alone := REFERENCE.fullmatch(value):
        return _referred(alone, replies)
    return REFERENCE.sub(lambda match: _text(_referred(match, replies)), value)


def _holds(expect: JsonObject, body: Any) -> bool:
    return all(_lookup(body, path.split(".")) == value for path, value in expect.items())


def _referred(match: re.Match[str], replies: Mapping[int, ToolReply]) -> Any:
    number, path = int(match[1]), match[2].strip()
    reply = replies.get(number)
    found = MISSING if reply is None else _lookup(reply.body, path.split(".")[1:])
    return f"[nothing at {number}{path}]" if found is MISSING else found


def _lookup(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch(r"-?\d+", key):
            index = int(key)
            if not -len(value) <= index < len(value):
                return MISSING
            value = value[index]
        else:
            return MISSING
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
