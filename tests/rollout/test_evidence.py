"""Evidence for a judge out of a trace: actions, thoughts, pictures."""

import json

import msgspec
import pytest
from support.traces import call

from rollout.environment import Environment
from rollout.evidence import evidence, thought_of
from rollout.types import Image, Task, ToolCall, Trace

SHOP = Image(data=b"shop")
CART = Image(data=b"cart")
TASK = Task(id="t", prompt="Buy a pen")


def said(text: str | None, started: float, **more):
    reply = {"choices": [{"message": {"role": "assistant", "content": text}}]}
    request = {"messages": [{"role": "user", "content": f"at {started}"}]}
    encoded = {"request": msgspec.json.encode(request), "reply": msgspec.json.encode(reply)}
    return call([], [], started=started, **encoded, **more)


def tool(name: str, started: float, **more) -> ToolCall:
    fields = {"index": 0, "arguments": {}, "status": 200, "reply": {}, "surface": "mcp"}
    return ToolCall(name=name, started=started, **(fields | more))


def test_each_tool_call_is_a_step_with_what_was_said_and_seen() -> None:
    trace = Trace(
        calls=(
            said("I open the shop.", 1),
            said("a title", 1.5, kind="side"),
            said('{"thought": "Now the cart", "action": {"name": "click"}}', 5),
            said("Done.", 9),
        ),
        tool_calls=(
            tool("goto", 2, reply={"url": "http://shop/"}, images=(SHOP.digest,)),
            tool("wait", 3, reply={"url": "http://shop/"}, images=("gone",)),
            tool("click", 6, status=409, reply={"error": "not there"}, images=(CART.digest,)),
        ),
        images={SHOP.digest: SHOP, CART.digest: CART},
        answer="Bought.",
    )
    found = evidence(TASK, trace, start="http://shop/", rubric=["a pen"])
    assert (found.task, found.answer, found.start, found.rubric) == (
        "Buy a pen",
        "Bought.",
        "http://shop/",
        ("a pen",),
    )
    assert [step.thought for step in found.steps] == ["I open the shop.", "", "Now the cart"]
    assert [step.screenshot for step in found.steps] == [SHOP, None, CART]
    assert [step.url for step in found.steps] == ["http://shop/", "http://shop/", ""]
    assert [step.error for step in found.steps] == ["", "", "not there"]
    assert found.steps[0].action == "goto {}"


def test_where_there_is_no_picture_the_action_says_what_was_answered() -> None:
    trace = Trace(
        tool_calls=(
            tool("mail_list", 1, arguments={"q": "é\ud83d"}, reply={"mails": ["x" * 2000]}),
            tool("mail_send", 2, status=500, reply=None),
        )
    )
    first, second = evidence(TASK, trace).steps
    assert first.action.startswith('mail_list {"q": "é\ud83d"} -> {"mails": ["xxx')
    assert first.action.endswith("(2015 characters)")
    assert (second.action, second.error) == ("mail_send {}", "status 500")


def test_an_environment_may_word_its_actions_itself() -> None:
    trace = Trace(tool_calls=(tool("click", 1),))
    (step,) = evidence(TASK, trace, describe=lambda call: f"{call.name} at (0, 0)").steps
    assert step.action == "click at (0, 0)"


@pytest.mark.parametrize(
    ("message", "thought"),
    [
        ({"content": " I look. "}, "I look."),
        ({"content": None, "reasoning_content": "Hm."}, "Hm."),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\n\nb"),
        ({"content": json.dumps({"thought": "t", "action": {}})}, "t"),
        ({"content": json.dumps({"name": "click"})}, ""),
        ({"content": "[1]"}, "[1]"),
        ({}, ""),
    ],
)
def test_a_thought_is_what_the_agent_said_of_its_action(message, thought: str) -> None:
    assert thought_of(message) == thought


def test_every_environment_has_evidence() -> None:
    assert Environment.evidence(None, TASK, Trace(answer="a")).answer == "a"  # type: ignore[arg-type]
