"""The every-tool policy: each tool once, with arguments that its schema allows."""

import pytest
from support.desk import TASK, attempt

from harness_wrappers.react import React
from rollout.errors import UsageError
from rollout.gateway.upstreams.every_tool import EveryTool
from rollout.sandboxes.local import Local
from rollout.types import Task, ToolSpec

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "default": 5},
        "kind": {"type": "string", "enum": ["b", "a"]},
        "day": {"type": "string", "description": "A date (YYYY-MM-DD)"},
        "ids": {"type": "array", "items": {"type": "string"}},
        "tags": {"type": "array"},
        "deep": {"type": "object", "properties": {"x": {"type": "number"}}},
        "yes": {"type": "boolean"},
        "free": {},
    },
}


def test_arguments_are_made_up_from_the_schema():
    task = Task(id="t", prompt="", tools=(ToolSpec(name="do", input_schema=SCHEMA),))
    solution = EveryTool().solution(task, 0)
    assert [(step.call, step.arguments) for step in solution.steps] == [
        (
            "do",
            {
                "n": 5,
                "kind": "b",
                "day": "2026-03-02",
                "ids": ["1"],
                "tags": [],
                "deep": {"x": 1},
                "yes": False,
                "free": "1",
            },
        )
    ]
    assert EveryTool().solution(Task(id="t", prompt=""), 0).answer == "I have called no tool."


@pytest.mark.parametrize("surface", ["native", "mcp"])
async def test_every_tool_is_called_once_whatever_it_answers(surface):
    _, trace = await attempt(React(), EveryTool(), surface, Local())
    assert [call.name for call in trace.tool_calls] == [tool.name for tool in TASK.tools]
    assert trace.answer.startswith("I have called ")


def test_it_takes_no_argument():
    with pytest.raises(UsageError, match="--model every-tool takes no argument"):
        EveryTool.from_spec("x", "")
