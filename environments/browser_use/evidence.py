"""From an episode's records to what a judge may be shown."""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import Any

from environments.browser_use.task import BrowserTask
from environments.browser_use.tools import ACTIONS, describe
from rollout.protocol import Evidence, ScreenStep
from rollout.transcript import UNREADABLE, chat_messages, main_calls
from rollout.types import Call, JsonObject, ToolCall, Trace

__all__ = ["evidence", "thought"]


def evidence(task: BrowserTask, trace: Trace) -> Evidence:
    """The task, each step with its thought, action, page and screenshot, and the answer."""
    return Evidence(
        task=task.prompt,
        steps=_steps(trace),
        answer=trace.answer,
        start=trace.world.get("start", task.start),
        rubric=task.rubric,
    )


def thought(call: Call) -> str:
    """What the model said beside its action: text, or the `thought` of a JSON reply."""
    try:
        said = chat_messages(call)[-1]
    except UNREADABLE:
        return ""
    text = _text(said.get("content")) or _text(said.get("reasoning_content"))
    try:
        reply = json.loads(text)
    except ValueError:
        return text
    inner = reply.get("thought", "") if isinstance(reply, dict) else text
    return inner if isinstance(inner, str) else ""


def _steps(trace: Trace) -> tuple[ScreenStep, ...]:
    calls = sorted(main_calls(trace), key=lambda call: call.started)
    begun = [call.started for call in calls]
    steps: list[ScreenStep] = []
    told = -1
    for act in trace.tool_calls:
        if act.name not in ACTIONS:
            continue
        # An agent acts on the latest reply that it was given before.
        latest = bisect_right(begun, act.started) - 1
        steps.append(_step(act, trace, thought(calls[latest]) if latest > told else ""))
        told = max(told, latest)
    return tuple(steps)


def _step(act: ToolCall, trace: Trace, why: str) -> ScreenStep:
    reply: JsonObject = act.reply if isinstance(act.reply, dict) else {}
    return ScreenStep(
        action=describe(act.name, act.arguments),
        thought=why,
        url=str(reply.get("url", "")),
        screenshot=trace.images.get(act.images[0]) if act.images else None,
        error=str(reply.get("error", "")),
    )


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "\n".join(filter(None, parts)).strip()
    return content.strip() if isinstance(content, str) else ""
