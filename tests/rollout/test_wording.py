"""Tool calls in words: captions for a film, whole calls for a judge."""

from typing import Any

import pytest

from rollout.types import ToolCall
from rollout.wording import caption, in_full, points


def call(name: str, arguments: Any, **fields: Any) -> ToolCall:
    told = {"index": 0, "status": 200, "reply": {}, "surface": "mcp", **fields}
    return ToolCall(name=name, arguments=arguments, **told)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        (
            "browser_click",
            {"x": 0.5, "y": 0.5, "button": "left", "count": 1},
            "click at (0.50, 0.50)",
        ),
        ("browser_click", {"x": 0.5, "y": 1, "count": 2}, "click count 2 at (0.50, 1.00)"),
        (
            "browser_drag",
            {"from_x": 0.1, "from_y": 0.2, "to_x": 0.8, "to_y": 0.9},
            "drag at (0.10, 0.20) to (0.80, 0.90)",
        ),
        ("browser_type", {"text": "milk", "clear": False, "enter": True}, 'type "milk" enter'),
        ("browser_click", {"x": 2, "y": "left"}, 'click x 2 "left"'),
        ("browser_back", [], "back"),
        ("mail_list", {}, "mail_list"),
    ],
)
def test_a_caption_leaves_out_what_goes_without_saying(
    name: str, arguments: Any, words: str
) -> None:
    assert caption(call(name, arguments)) == words


def test_in_full_a_call_has_its_answer_unless_a_picture_or_an_error_shows_it() -> None:
    assert in_full(call("add", {"text": "é"}, reply={"id": 1})) == 'add {"text": "é"} -> {"id": 1}'
    assert in_full(call("look", {}, images=("digest",))) == "look {}"
    assert in_full(call("add", {}, status=422, reply={"error": "no text"})) == "add {}"
    assert in_full(call("read", {}, reply="x" * 2000)).endswith("... (2002 characters)")


def test_points_are_fractions_of_the_screen() -> None:
    assert list(points({"from_x": 0, "from_y": 1, "to_x": 0.5, "to_y": 0.25})) == [
        (0, 1),
        (0.5, 0.25),
    ]
    assert list(points({"x": 300, "y": 0.5})) == []
    assert list(points("0.5, 0.5")) == []
