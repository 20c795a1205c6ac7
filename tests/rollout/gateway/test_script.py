"""Scripted solutions: steps, references, retries, going back."""

import pytest

from rollout.gateway.upstreams._script import failed, next_action, play, resolve
from rollout.types import Solution, Step, ToolReply


def solution(*steps, answer="done"):
    return Solution(name="reference", steps=steps, answer=answer)


def ok(body):
    return ToolReply(body=body)


async def calls_of(script, replies):
    """Play against canned replies; the calls made and the answer."""
    made = []
    feed = iter(replies)

    async def call(name, arguments):
        made.append((name, arguments))
        return next(feed)

    return made, await play(script, call)


async def test_steps_run_in_order_and_the_answer_ends_them():
    script = solution(Step(call="a", arguments={"x": 1}), Step(call="b"))
    made, answer = await calls_of(script, [ok({}), ok({})])
    assert made == [("a", {"x": 1}), ("b", {})]
    assert answer == "done"


async def test_no_steps_answers_at_once():
    assert await calls_of(solution(answer="I can't"), []) == ([], "I can't")


async def test_a_lone_reference_keeps_its_type_and_an_embedded_one_is_text():
    script = solution(
        Step(call="list"),
        Step(
            call="use",
            arguments={
                "id": "{{1.items.1.id}}",
                "all": ["{{ 1.items }}"],
                "last": "{{1.items.-1.name}}",
                "title": "Re: {{1.items.0.name}} ({{1.items.0.id}}, {{1.flag}})",
                "nested": {"whole": "{{1}}"},
            },
        ),
        answer="{{2.n}} for {{1.items.0.name}}",
    )
    body = {"items": [{"id": 7, "name": "Zoë"}, {"id": 8, "name": "李"}], "flag": None}
    made, answer = await calls_of(script, [ok(body), ok({"n": 2.5})])
    assert made[1][1] == {
        "id": 8,
        "all": [body["items"]],
        "last": "李",
        "title": "Re: Zoë (7, null)",
        "nested": {"whole": body},
    }
    assert answer == "2.5 for Zoë"


@pytest.mark.parametrize(
    "reference", ["{{1.items.5.id}}", "{{1.nothing}}", "{{9.id}}", "{{1.items.x}}", "{{1.n.deep}}"]
)
def test_a_missing_reference_is_visible_text(reference):
    replies = {1: ok({"items": [1], "n": 3})}
    assert resolve(reference, replies) == f"[nothing at {reference.strip('{}')}]"
    assert "nothing at" in resolve(f"say {reference}!", replies)


async def test_retry_sends_the_same_call_while_the_reply_is_an_error():
    script = solution(Step(call="a", arguments={"x": 1}, retry=2), Step(call="b"))
    errors = [ToolReply(status=429, body={}), ok({"error": "rate limited"})]
    made, _ = await calls_of(script, [*errors, ok({}), ok({})])
    assert [name for name, _ in made] == ["a", "a", "a", "b"]


async def test_retries_are_limited_and_off_by_default():
    script = solution(Step(call="a", retry=1), Step(call="b"))
    bad = ToolReply(status=500)
    made, _ = await calls_of(script, [bad, bad, bad])
    assert [name for name, _ in made] == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (ToolReply(status=404), True),
        (ok({"error": "no such mail"}), True),
        (ok({"error": None, "id": 1}), False),
        (ok({"error": ""}), False),
        (ok([{"error": "in an item"}]), False),
        (ok("error"), False),
    ],
)
def test_what_counts_as_an_error(reply, error):
    assert failed(reply) is error


async def test_expect_goes_back_until_it_holds():
    script = solution(
        Step(call="write"), Step(call="read", expect={"item.state": "on"}, back=1), Step(call="end")
    )
    off, on = ok({"item": {"state": "off"}}), ok({"item": {"state": "on"}})
    made, _ = await calls_of(script, [ok({}), off, ok({}), on, ok({})])
    assert [name for name, _ in made] == ["write", "read", "write", "read", "end"]


async def test_expect_gives_up_after_three_rounds():
    script = solution(Step(call="write"), Step(call="read", expect={"on": True}, back=1))
    made, answer = await calls_of(script, [ok({})] * 8)
    assert [name for name, _ in made] == ["write", "read"] * 4
    assert answer == "done"


async def test_expect_without_back_asks_again():
    script = solution(Step(call="poll", expect={"ready": True}))
    made, _ = await calls_of(script, [ok({"ready": False}), ok({"ready": True})])
    assert len(made) == 2


async def test_references_take_the_latest_run_of_a_step():
    script = solution(
        Step(call="write"), Step(call="read", expect={"on": True}, back=1), answer="{{1.id}}"
    )
    replies = [ok({"id": 1}), ok({}), ok({"id": 2}), ok({"on": True})]
    assert (await calls_of(script, replies))[1] == "2"


def test_calls_that_the_script_did_not_make_are_skipped():
    script = solution(Step(call="a"), Step(call="b"))
    assert next_action(script, [("other", ok({})), ("a", ok({})), ("other", ok({}))]) == Step(
        call="b"
    )


async def test_targets_are_looked_up_when_their_step_is_due():
    script = solution(
        Step(call="list"),
        Step(
            call="click",
            arguments={"x": "{{at:text=Buy {{1.id}}|x}}", "y": ["{{ at:text=Buy {{1.id}}|y }}"]},
        ),
        Step(call="click", arguments={"x": "{{at:gone|x}}", "at": "see {{at:gone|x}}"}),
    )
    asked = []

    async def locate(target):
        asked.append(target)
        return {"text=Buy 7": {"x": 0.5, "y": 0.25}}[target]

    made = []

    async def call(name, arguments):
        made.append(arguments)
        return ok({"id": 7})

    await play(script, call, locate)
    assert made[1:] == [
        {"x": 0.5, "y": [0.25]},
        {"x": "[nothing at gone]", "at": "see {{at:gone|x}}"},
    ]
    assert asked == ["text=Buy 7", "gone"]
    await play(script, call)
    assert made[4] == {"x": "[nothing at text=Buy 7]", "y": ["[nothing at text=Buy 7]"]}
