"""Harnesses that can go on with a conversation: what the model sees, and when it ends."""

import json

import pytest
from support.desk import Scripted, TalkingDesk, attempt, call, say

from harness_wrappers.claude_code import ClaudeCode
from harness_wrappers.codex import Codex
from harness_wrappers.kimi_code import KimiCode
from harness_wrappers.opencode import OpenCode
from harness_wrappers.react import ALONE, React
from rollout.errors import HarnessError, UsageError
from rollout.harness import Harness
from rollout.sandboxes.local import Local
from rollout.types import Outcome

QUESTION, REPLY, ANSWER = "To whom?", "[user_agent]\nTo Li.", "Sent."


async def ready(harness: Harness) -> Harness:
    try:
        await harness.prepare()
    except UsageError as error:
        pytest.skip(str(error))
    return harness


@pytest.mark.parametrize(
    "make", [React, Codex, ClaudeCode, KimiCode, pytest.param(OpenCode, marks=pytest.mark.slow)]
)
async def test_the_model_sees_one_conversation_and_the_last_answer_counts(make):
    harness, desk = await ready(make()), TalkingDesk(REPLY)
    upstream = Scripted([say(QUESTION), call(("clock_now", "{}")), say(ANSWER)])
    if make is not React:
        upstream = Scripted([say(QUESTION), say(ANSWER)])
    episode, trace = await attempt(
        harness, upstream, harness.surfaces[0], Local(), environment=desk
    )
    assert desk.heard == [QUESTION, ANSWER]
    assert trace.answer == ANSWER
    assert (episode.outcome, episode.cause) == (Outcome.FAILED, "")
    last = upstream.requests[-1].body["messages"]
    said = [(m["role"], m["content"]) for m in last if m.get("content") in (QUESTION, REPLY)]
    assert said == [("assistant", QUESTION), ("user", REPLY)]


async def test_react_is_not_told_that_nobody_answers():
    upstream = Scripted([say(QUESTION), say(ANSWER)])
    await attempt(React(), upstream, "native", Local(), environment=TalkingDesk(REPLY))
    assert ALONE not in json.dumps(upstream.requests[0].body["messages"][0])


async def test_a_reply_cut_short_ends_the_conversation():
    upstream, desk = Scripted([say("and th")], finish="length"), TalkingDesk(REPLY)
    _, trace = await attempt(React(), upstream, "native", Local(), environment=desk)
    assert (desk.heard, trace.answer) == ([], "and th")


def test_others_say_that_they_can_not():
    assert not Harness.converses
    with pytest.raises(HarnessError, match="can't go on"):
        Harness().launch_again(None, "", None)  # type: ignore[arg-type]
