"""Thoughts and tool calls in sampled text, in the style of Hermes and Qwen.

    <think>...</think> text <tool_call>{"name": ..., "arguments": {...}}</tool_call> ...

What can't be read as a call stays text, so that the harness shows the model what it wrote. A last call
that is not closed counts when its JSON is whole, as in vLLM's parser `hermes`.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from rollout.jsontext import read_json
from rollout.types import JsonObject

__all__ = ["Said", "parse"]

CLOSING = "</think>"
OPENING = "<think>"
CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)


class Said(NamedTuple):
    """One reply."""

    content: str
    thoughts: str
    calls: tuple[tuple[str, str], ...]
    """Name and arguments (JSON text) of each."""


def parse(text: str, *, thinking: bool = False) -> Said:
    """What a text says. `thinking`: the prompt has opened a thought already."""
    thoughts, content = _thoughts(text, thinking)
    calls: list[tuple[str, str]] = []

    def take(match: re.Match[str]) -> str:
        call = _call(match[1])
        if call is None:
            return match[0]
        calls.append(call)
        return ""

    return Said(CALL.sub(take, content).strip(), thoughts.strip(), tuple(calls))


def _thoughts(text: str, thinking: bool) -> tuple[str, str]:
    """A thought and the rest. One that never ends leaves nothing else."""
    begun = text.lstrip()
    if not thinking and not begun.startswith(OPENING):
        return "", text
    thoughts, _, rest = begun.removeprefix(OPENING).partition(CLOSING)
    return thoughts, rest


def _call(text: str) -> tuple[str, str] | None:
    """None where it is no object with a name, or its arguments are no object."""
    try:
        told = read_json(text.strip(), JsonObject)
    except (ValueError, RecursionError):
        return None
    name, arguments = told.get("name"), told.get("arguments", {})
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return None
    return name, json.dumps(arguments, ensure_ascii=False)
