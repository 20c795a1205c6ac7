"""`--model every-tool`: calls each of a task's tools once, then answers. No LLM, no key.

It knows nothing of the task: the arguments are made up from each tool's schema. A run with it shows that
every tool of every task can be reached and answers, and that every attempt ends with a verdict.
"""

from __future__ import annotations

from typing import Any

from rollout.gateway.upstreams.reference import Reference
from rollout.types import JsonObject, Solution, Step, Task

__all__ = ["EveryTool"]


class EveryTool(Reference):
    """The scripted policy; it finds its way to a tool as the reference policy does."""

    model = "every-tool"
    label = "every-tool policy (no LLM)"

    def unfit(self, task: Task) -> str:
        return ""

    def solution(self, task: Task, seed: int) -> Solution:
        steps = tuple(
            Step(call=tool.name, arguments=_made_up(tool.input_schema)) for tool in task.tools
        )
        names = ", ".join(tool.name for tool in task.tools) or "no tool"
        return Solution(name="every tool", steps=steps, answer=f"I have called {names}.")


def _made_up(schema: JsonObject) -> Any:
    """A value that a JSON schema allows, as far as `type`, `enum`, `default` and `properties` go."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _made_up(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_made_up(schema["items"])] if isinstance(schema.get("items"), dict) else []
        case "integer" | "number":
            return 1
        case "boolean":
            return False
    return "2026-03-02" if "date" in str(schema.get("description", "")).lower() else "1"
