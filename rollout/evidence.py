"""What a judge may be shown of an attempt, out of its trace, whatever harness and environment it had."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from rollout.protocol import Evidence, ScreenStep
from rollout.transcript import main_calls, said
from rollout.types import JsonObject, Task, ToolCall, Trace
from rollout.wording import as_json, in_full

__all__ = ["evidence", "thought_of"]


def evidence(
    task: Task,
    trace: Trace,
    *,
    start: str = "",
    rubric: Sequence[str] = (),
    describe: Callable[[ToolCall], str] = in_full,
) -> Evidence:
    """One step per dispatched tool call: nothing that the agent only spoke of is in it.

    `describe` puts a call into words; environments that know their tools have better ones.
    The thought is what the agent said with the call; of calls made in one go the first has it. URL,
    screenshot and error are those of the call's reply.
    """
    steps = tuple(
        ScreenStep(
            action=describe(call),
            thought=thought,
            url=_field(call, "url"),
            screenshot=trace.images.get(call.images[-1]) if call.images else None,
            error=_error(call),
        )
        for call, thought in _with_thoughts(trace)
    )
    return Evidence(
        task=task.prompt, steps=steps, answer=trace.answer, start=start, rubric=tuple(rubric)
    )


def thought_of(message: JsonObject) -> str:
    """Why the agent acts, as it says in a reply: its words, else its reasoning.

    Where the reply is itself JSON with a `thought`, as that of models trained for the web, it is that.
    """
    content = message.get("content") or ""
    if isinstance(content, list):
        parts = (part.get("text", "") for part in content if isinstance(part, dict))
        content = "\n\n".join(filter(None, parts))
    text = str(content or message.get("reasoning_content") or message.get("reasoning") or "")
    try:
        spoken = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
    if not isinstance(spoken, dict):
        return text.strip()
    return str(spoken.get("thought") or "").strip()


def _with_thoughts(trace: Trace) -> Iterator[tuple[ToolCall, str]]:
    """A tool call belongs to the last reply that was asked for before it."""
    calls = sorted(main_calls(trace), key=lambda call: (call.started, call.index))
    begun = [call.started for call in calls]
    before = -1
    for tool in trace.tool_calls:
        turn = bisect_right(begun, tool.started) - 1
        message = said(calls[turn]) if turn > before else None
        yield tool, thought_of(message) if message else ""
        before = max(before, turn)


def _error(call: ToolCall) -> str:
    told = _field(call, "error")
    return told or (f"status {call.status}" if call.status >= 400 else "")


def _field(call: ToolCall, name: str) -> str:
    value = call.reply.get(name) if isinstance(call.reply, dict) else None
    return value if isinstance(value, str) else as_json(value) if value else ""
