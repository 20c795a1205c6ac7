"""From an episode's records to what a judge may be shown, the actions in a person's words."""

from __future__ import annotations

from environments.browser_use.task import BrowserTask
from environments.browser_use.tools import parse
from rollout import evidence as generic
from rollout.protocol import Evidence
from rollout.types import ToolCall, Trace
from rollout.wording import in_full

__all__ = ["describe", "evidence"]


def evidence(task: BrowserTask, trace: Trace) -> Evidence:
    """The task, each step with its thought, action, page and screenshot, and the answer."""
    start = trace.world.get("start", task.start)
    return generic.evidence(task, trace, start=start, rubric=task.rubric, describe=describe)


def describe(call: ToolCall) -> str:
    """A tool call in words; one of another tool, or with bad arguments, as any environment has it."""
    try:
        return parse(call.name, call.arguments).describe()
    except (KeyError, ValueError):
        return in_full(call)
