"""The interpreter of scripted solutions: what a `Solution` does next, given what it has seen so far.

Pure: the state is the history alone, so a policy that only sees a conversation can play a solution from
any point of it. `types.Step` documents the syntax.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from rollout.types import JsonObject, Solution, Step, ToolReply

__all__ = ["History", "failed", "next_action", "play", "resolve"]

History = Sequence[tuple[str, ToolReply]]
"""Tool calls made so far, in order: bare tool name and reply."""

ROUNDS = 3
"""How often one step's `expect` may send the solution back."""

REFERENCE = re.compile(r"\{\{\s*(\d+)((?:\.[^{}.]+)*)\s*\}\}")
MISSING = object()


def next_action(solution: Solution, history: History) -> Step | str:
    """The step to take next, with its references resolved, or the final answer.

    Calls in `history` that are not the awaited step's are skipped: the harness's own doing.
    """
    position, replies = _replay(solution.steps, history)
    if position >= len(solution.steps):
        return _text(resolve(solution.answer, replies))
    step = solution.steps[position]
    return Step(call=step.call, arguments=resolve(step.arguments, replies))


async def play(solution: Solution, call: Callable[[str, Any], Awaitable[ToolReply]]) -> str:
    """Play a solution directly against a world's `call`; the final answer."""
    history: list[tuple[str, ToolReply]] = []
    while isinstance(action := next_action(solution, history), Step):
        history.append((action.call, await call(action.call, action.arguments)))
    return action


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


def _replay(steps: Sequence[Step], history: History) -> tuple[int, dict[int, ToolReply]]:
    """The step that is due, and the latest reply to each step (counted from 1)."""
    position = retries = 0
    rounds: Counter[int] = Counter()
    replies: dict[int, ToolReply] = {}
    for name, reply in history:
        if position >= len(steps):
            break
        step = steps[position]
        if name != step.call:
            continue
        replies[position + 1] = reply
        if failed(reply) and retries < step.retry:
            retries += 1
            continue
        retries = 0
        if not _holds(step.expect, reply.body) and rounds[position] < ROUNDS:
            rounds[position] += 1
            position = max(0, position - step.back)
        else:
            position += 1
    return position, replies


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
