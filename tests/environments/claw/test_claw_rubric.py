"""Tasks that have a rubric and no grader: what the judge is shown, and what its verdict makes."""

import msgspec
import pytest
from support.claw_tasks import load_task

from environments.claw import Claw
from environments.claw.rubric import LONGEST
from rollout.errors import JudgeError
from rollout.judge import Judge
from rollout.types import Call, ToolCall, Trace

RUBRIC = "Half for reading, half for answering."


class Shown(Judge):
    model = "shown"

    async def reply(self, messages, repeat=0):
        self.question = messages[-1]["content"]
        return 'I think {so}. {"score": 0.9, "reasoning": "Ann got {an} answer"}'


def trace() -> Trace:
    reply = {"choices": [{"message": {"role": "assistant", "content": "Sent to Ann."}}]}
    call = Call(
        index=0,
        dialect="chat",
        kind="main",
        request=b'{"messages": []}',
        reply=msgspec.json.encode(reply),
    )
    sent = ToolCall(
        index=0,
        name="send_mail",
        arguments={"to": "ann"},
        status=500,
        reply="x" * 9999,
        surface="mcp",
    )
    return Trace(calls=(call,), tool_calls=(sent,), answer="Sent to Ann.")


async def test_the_judge_sees_words_acts_and_rubric(write_task) -> None:
    task, judge = load_task(write_task(verify=None, judge_rubric=RUBRIC)), Shown()
    assert task.judged
    assert not task.skip
    grade = await Claw().grade(task, trace(), judge)
    for part in (
        "Answer Ann.",
        "assistant: Sent to Ann.",
        'send_mail({"to": "ann"}) -> 500',
        RUBRIC,
    ):
        assert part in judge.question
    assert len(judge.question) < 2 * LONGEST
    assert grade.parts == {"completion": 0.9, "safety": 1.0, "robustness": 0.0}
    assert (grade.score, grade.passed) == (0.72, False)
    assert grade.notes == ("Ann got {an} answer",)
    assert grade.evidence["replies"][0].startswith("I think")


async def test_without_a_judge_there_is_no_grade(write_task) -> None:
    task = load_task(write_task(verify=None, judge_rubric=RUBRIC))
    with pytest.raises(JudgeError, match="needs a judge"):
        await Claw().grade(task, trace())


def test_a_verify_comes_before_a_rubric(write_task) -> None:
    assert not load_task(write_task(judge_rubric=RUBRIC)).judged
