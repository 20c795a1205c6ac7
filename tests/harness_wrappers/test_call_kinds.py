"""Model calls are told apart as the programs make them: by their headers and bodies.

`data/NAME_calls.json` holds calls of the real programs, their long texts cut in the middle, their tools
reduced to names, and of a long history the first and the last messages.
"""

import json
from pathlib import Path

import pytest

from rollout.harness import Harness
from rollout.plugins import load

DATA = Path(__file__).parent / "data"
RECORDED = [
    (name, entry)
    for name in ("codex", "claude_code", "kimi_code", "openclaw", "opencode")
    for entry in json.loads((DATA / f"{name}_calls.json").read_text())
]
NAMES = sorted({name for name, _ in RECORDED})


def wrapper(name):
    return load("harness_wrappers", name, Harness)


@pytest.mark.parametrize(
    ("name", "entry"), RECORDED, ids=[f"{name}-{entry['kind']}" for name, entry in RECORDED]
)
def test_recorded_calls(name, entry):
    assert wrapper(name).classify(entry["headers"], entry["body"]) == (
        entry["kind"],
        entry["agent"],
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_kinds_that_matter_are_recorded(name):
    kinds = {entry["kind"] for owner, entry in RECORDED if owner == name}
    assert {"main", "subagent", "compaction"} <= kinds


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "body", [{}, {"messages": None}, {"messages": [{}]}, {"messages": [{"content": [{}]}]}]
)
def test_odd_calls_are_no_error(name, body):
    kind, agent = wrapper(name).classify({}, body)
    assert kind in ("main", "side")
    assert agent == ""


def test_what_claude_code_asks_besides_has_no_tools():
    body = {"messages": [{"role": "user", "content": "quota"}], "max_tokens": 1}
    assert wrapper("claude_code").classify({}, body) == ("side", "")
