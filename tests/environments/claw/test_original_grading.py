"""A checkout's own graders: what they are given, what they may do, and how their failures end."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.claw_tasks import load_task

from environments.claw import Claw
from environments.claw.original import grading
from environments.claw.task import ClawTask
from rollout.errors import JudgeError
from rollout.judge import Judge
from rollout.types import Call, Grade, ToolCall, Trace

NOTHING = Trace()
STAND_IN = Path(__file__).parent / "checkout"

HEAD = """
from claw_eval.graders.base import AbstractGrader, load_peer_grader
from claw_eval.models.trace import DimensionScores

class Grader(AbstractGrader):
    def grade(self, messages, dispatches, task, audit_data=None, judge=None, media_events=None,
              env_snapshot=None):
"""
ASKS = """
        told = judge.evaluate(task.prompt.text, "talk", "acts", "Be strict.")
        return DimensionScores(completion=told.score, robustness=1.0)
"""


class Replies(Judge):
    """Says these things, each the first time that it is asked; then the last one for ever."""

    model = "replies"

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.asked: list[tuple[str, int]] = []

    async def reply(self, messages: list[dict[str, Any]], repeat: int = 0) -> str:
        text = self.texts[min(len(self.asked), len(self.texts) - 1)]
        self.asked.append((messages[-1]["content"], repeat))
        if text == "dead":
            raise JudgeError("the judge is out of reach")
        return text


@pytest.fixture
def task(write_task, tmp_path: Path):
    """`task(body)`: a task whose grader does that, in a checkout."""
    shutil.copytree(STAND_IN / "src", tmp_path / "src")

    def write(body: str, name: str = "T900_mail", **changes: Any) -> ClawTask:
        folder = write_task(name, verify=None, clock=None, **changes)
        (folder / "grader.py").write_text(HEAD + body)
        return load_task(folder)

    return write


def said(text: str, kind: str = "main", request: Any = None) -> Call:
    body = request or {"messages": [{"role": "user", "content": "Answer Ann."}]}
    reply = {"choices": [{"message": {"role": "assistant", "content": text}}]}
    return Call(
        index=0,
        dialect="chat",
        kind=kind,
        request=json.dumps(body).encode(),
        reply=json.dumps(reply).encode(),
    )


async def grade(task: ClawTask, trace: Trace = NOTHING, judge: Judge | None = None) -> Grade:
    return await Claw().grade(task, trace, judge)


async def test_a_grader_gets_all_that_was_recorded(task) -> None:
    body = """
        assert [self.text_of(m) for m in messages] == ["Answer Ann.", "Done."], messages
        (call,) = dispatches
        assert (call.tool_name, call.request_body) == ("send_mail", {"to": "ann"}), call
        assert (call.response_status, call.response_body) == (422, {"detail": "\\u4e0d"}), call
        assert call.endpoint_url == "http://localhost:9100/gmail/send"
        assert audit_data == {"gmail": {"calls": []}} and media_events == []
        assert env_snapshot == {"cmd:ls": {"exit_code": 0}}
        return DimensionScores(completion=0.5, robustness=0.25, communication=0.125)
"""
    sent = ToolCall(
        index=0,
        name="send_mail",
        arguments={"to": "ann"},
        status=422,
        reply={"detail": "不"},
        surface="mcp",
    )
    world = {"audit": {"gmail": {"calls": []}}, "env_snapshot": {"cmd:ls": {"exit_code": 0}}}
    trace = Trace(
        calls=(said("Done."), said("A title", "side")),
        tool_calls=(sent,),
        answer="Done.",
        world=world,
    )
    assert await grade(task(body), trace) == Grade(
        score=0.45,
        passed=False,
        parts={"completion": 0.5, "robustness": 0.25, "communication": 0.125, "safety": 1.0},
    )


async def test_what_is_not_unicode_or_64_bits_is_graded_as_it_is_stored(task) -> None:
    body = """
        assert dispatches[0].request_body == {"to": "\\\\ud83d", "n": str(2**70)}, dispatches
        return DimensionScores(completion=1.0, robustness=1.0)
"""
    sent = ToolCall(
        index=0,
        name="send_mail",
        arguments={"to": "\ud83d", "n": 2**70},
        status=200,
        reply=None,
        surface="mcp",
    )
    assert (await grade(task(body), Trace(tool_calls=(sent,)))).passed


async def test_peers_are_found_and_nothing_is_left_behind(task, tmp_path: Path) -> None:
    first = task("        return DimensionScores(completion=1.0, robustness=1.0)\n")
    second = task("", "T901_mail")
    Path(second.grader).write_text(
        "from claw_eval.graders.base import load_peer_grader\n"
        f"class Grader(load_peer_grader({first.id!r})):\n    pass\n"
    )
    assert (await grade(second)).score == 1.0
    assert not list(tmp_path.rglob("*.pyc"))


async def test_the_process_has_no_keys_and_a_home_of_its_own(task, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    body = """
        import os
        assert "OPENAI_API_KEY" not in os.environ and os.environ["HOME"] != "%s"
        print("printing is harmless")
        return DimensionScores(completion=1.0, robustness=1.0)
"""
    assert (await grade(task(body % os.environ.get("HOME", "")))).passed


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("        {}['total']\n", "grader.py:8: KeyError: 'total'"),
        ("        raise SystemExit(3)\n", "grader.py:8: SystemExit: 3"),
        ("        import os; os.abort()\n", "its process ended with signal SIGABRT"),
        ("        bytearray(2**40)\n", "grader.py:8: MemoryError"),
        ("        (\n", "SyntaxError"),
    ],
)
async def test_a_crash_leaves_the_attempt_ungraded_and_says_where(task, body, line) -> None:
    with pytest.raises(JudgeError) as caught:
        await grade(task(body))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    if ".py" in line:
        assert caught.value.detail.startswith("Traceback")


async def test_a_grader_that_hangs_is_killed(task, monkeypatch) -> None:
    monkeypatch.setattr(grading, "SECONDS", 0.2)
    body = "        import subprocess; subprocess.run(['sleep', '1000'])\n"
    with pytest.raises(JudgeError, match="no score after"):
        await grade(task(body))


async def test_the_judge_is_asked_through_the_checkouts_own_prompts(task) -> None:
    judge = Replies('Well. {"score": 0.75, "reasoning": "fine"}')
    asks = task(ASKS)
    grade_ = await grade(asks, judge=judge)
    assert asks.judged
    assert judge.asked == [("Answer Ann.\ntalk\nacts\nBe strict.", 0)]
    assert grade_.parts["completion"] == 0.75
    assert grade_.evidence == {
        "judge_calls": [{"method": "evaluate", "score": 0.75}],
        "replies": ['Well. {"score": 0.75, "reasoning": "fine"}'],
    }


async def test_braces_in_the_reasoning_are_read_in_the_same_reply(task) -> None:
    judge = Replies('{"score": 1.0, "reasoning": "it wrote {name}, not Ann"}')
    assert (await grade(task(ASKS), judge=judge)).passed
    assert len(judge.asked) == 1


async def test_an_unreadable_reply_is_asked_for_anew_and_kept(task) -> None:
    judge = Replies("I like it.", '{"score": 0.5, "reasoning": ""}')
    grade_ = await grade(task(ASKS), judge=judge)
    assert [repeat for _, repeat in judge.asked] == [0, 1]
    assert grade_.evidence["replies"][0] == "I like it."


@pytest.mark.parametrize(
    ("judge", "reason"),
    [
        (Replies("I like it."), "no reply that its grader can read"),
        (Replies("dead"), "out of reach"),
        (None, "needs a judge"),
    ],
)
async def test_no_verdict_is_no_zero_even_if_the_grader_would_make_one(task, judge, reason) -> None:
    forgiving = """
        try:
            return DimensionScores(completion=judge.evaluate("a", "b", "c", "d").score)
        except Exception:
            return DimensionScores(completion=0.0)
"""
    with pytest.raises(JudgeError, match=reason):
        await grade(task(forgiving), judge=judge)


def test_without_a_checkout_a_grader_is_no_use(write_task) -> None:
    folder = write_task(verify=None)
    (folder / "grader.py").write_text(HEAD + ASKS)
    assert "src/claw_eval" in load_task(folder).skip


def test_who_is_asked_is_seen_through_peers_and_helpers(task, tmp_path: Path) -> None:
    helper = tmp_path / "src" / "claw_eval" / "graders" / "pictures.py"
    helper.write_text("def look(judge):\n    return judge.evaluate_visual('', [], [])\n")
    plain = task("        return DimensionScores()\n", "T901_plain")
    asking = task(ASKS, "T902_asking")
    peer = task("", "T903_peer")
    Path(peer.grader).write_text(f"Grader = load_peer_grader({asking.id!r})\n")
    helped = task("", "T904_helped")
    Path(helped.grader).write_text("from claw_eval.graders.pictures import look\n")
    found = [load_task(Path(t.folder)).judged for t in (plain, asking, peer, helped)]
    assert found == [False, True, True, True]


async def test_a_shell_is_told_only_to_graders_that_look_for_one(task) -> None:
    function = {"name": "exec_command", "arguments": '{"cmd": "ls"}'}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    call = Call(
        index=0,
        dialect="chat",
        kind="main",
        request=b'{"messages": []}',
        reply=json.dumps({"choices": [{"message": message}]}).encode(),
    )
    counts = """
        looked = [d for d in dispatches if d.tool_name == %s]
        return DimensionScores(completion=float(len(looked)), robustness=float(len(dispatches)))
"""
    looks, other = task(counts % '"Bash"'), task(counts % '"list_mail"', "T901_other")
    trace = Trace(calls=(call,))
    assert (await grade(looks, trace)).score == 1.0
    assert (await grade(other, trace)).score == 0.0
