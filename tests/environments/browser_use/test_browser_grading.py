"""Grades from records alone: verifiers, judges with a protocol, blocked attempts."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from environments.browser_use.environment import BrowserUse
from environments.browser_use.evidence import evidence
from environments.browser_use.task import BrowserTask
from environments.browser_use.verify import broken, graded
from rollout.errors import Blocked, EnvironmentFault
from rollout.judge import Judge, Verdict
from rollout.protocol import Evidence, Protocol
from rollout.types import Call, Grade, Image, JsonObject, Task, ToolCall, Trace

VERIFY = """
def verify_buy_milk(state, answer):
    cart = state["shop"]["cart"]
    state["shop"]["cart"] = []
    yield "cart", cart == ["milk"], "the cart holds the milk alone"
    yield "answer", "2.50" in answer

def verify_get_file(state, answer):
    from rollout.types import Grade
    return Grade(score=1.0 if state["downloads"][0]["name"] == "a.csv" else 0.0, passed=True)

def verify_broken(state, answer):
    print("to stderr")
    return [("x", 1 / 0)]

def verify_empty(state, answer):
    return []
"""


@pytest.fixture
def verifier(tmp_path: Path) -> str:
    path = tmp_path / "verify.py"
    path.write_text(VERIFY)
    return str(path)


def left(**world: Any) -> Trace:
    return Trace(answer="It costs 2.50.", world={"site": {}, "downloads": [], **world})


async def test_checks_of_a_verifier(verifier: str) -> None:
    task = BrowserTask(id="buy-milk", prompt="Buy milk.", verifier=verifier)
    trace = left(site={"shop": {"cart": ["milk"]}})
    for _ in range(2):  # what a verifier changes is its own copy
        assert (await BrowserUse().grade(task, trace)).passed
    grade = await BrowserUse().grade(task, left(site={"shop": {"cart": []}}))
    assert grade == Grade(
        score=0.5,
        passed=False,
        parts={"cart": 0.0, "answer": 1.0},
        notes=("not met: the cart holds the milk alone",),
    )


async def test_a_verifier_may_grade_itself(verifier: str) -> None:
    task = BrowserTask(id="get_file", prompt="", verifier=verifier)
    trace = left(downloads=[{"name": "a.csv", "size": 3}])
    assert await BrowserUse().grade(task, trace) == Grade(score=1.0, passed=True)


async def test_verifiers_that_fail_are_the_environments_fault(
    verifier: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, problem in [
        ("broken", r"verify\.py:14: ZeroDivisionError"),
        ("empty", "made no check"),
        ("other", r"no function verify_other\(state, answer\)"),
    ]:
        task = BrowserTask(id=name, prompt="", verifier=verifier)
        with pytest.raises(EnvironmentFault, match=problem):
            await BrowserUse().grade(task, left())
    assert capsys.readouterr().out == ""
    assert "no function verify_other" in broken(task)
    assert broken(msgspec.structs.replace(task, id="empty")) == ""
    assert "FileNotFoundError" in broken(BrowserTask(id="x", prompt="", verifier="/no/such.py"))


def test_checks_with_and_without_notes() -> None:
    assert graded([("a", 1), ("b", [])]).notes == ("not met: b",)


async def test_an_attempt_that_was_kept_out_has_no_grade(verifier: str) -> None:
    task = BrowserTask(id="buy-milk", prompt="", verifier=verifier)
    with pytest.raises(Blocked, match="captcha"):
        await BrowserUse().grade(task, left(blocked="captcha at shop.org"))


async def test_a_task_that_nobody_can_grade() -> None:
    with pytest.raises(EnvironmentFault, match="no verifier, no judge"):
        await BrowserUse().grade(BrowserTask(id="x", prompt=""), left())
    with pytest.raises(EnvironmentFault, match="not a task of the browser"):
        await BrowserUse().grade(Task(id="x", prompt=""), left())


class Strict(Protocol):
    def __init__(self, score: float) -> None:
        self.score = score
        self.seen: list[Evidence] = []

    async def verdict(self, evidence: Evidence, judge: Judge) -> Verdict:
        self.seen.append(evidence)
        return Verdict(
            score=self.score, reasoning="because", raw="raw", details={"key_points": ["a"]}
        )

    def fingerprint(self) -> JsonObject:
        return {"protocol": "strict"}


class Nobody(Judge):
    async def reply(self, messages: list[JsonObject], repeat: int = 0) -> str:
        raise AssertionError


async def test_a_judge_is_asked_where_there_is_no_verifier() -> None:
    task = BrowserTask(id="x", prompt="Find it.", rubric=("looks",))
    for score in (1.0, 0.9):
        protocol = Strict(score)
        environment = BrowserUse(protocol=protocol)
        grade = await environment.grade(task, left(start="http://a.org/"), Nobody())
        assert (grade.score, grade.passed) == (score, score == 1.0)
        assert grade.notes == ("because",)
        verdict = grade.evidence["verdict"]
        assert (verdict["raw"], verdict["details"]) == ("raw", {"key_points": ["a"]})
        (seen,) = protocol.seen
        assert (seen.task, seen.start, seen.rubric) == ("Find it.", "http://a.org/", ("looks",))
        assert environment.fingerprint()["protocol"] == {"protocol": "strict"}


def model_call(index: int, started: float, message: JsonObject, **fields: Any) -> Call:
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", **message}}]}
    return Call(
        index=index,
        dialect="chat",
        kind=fields.pop("kind", "main"),
        request=msgspec.json.encode({"messages": [{"role": "user", "content": str(index)}]}),
        reply=msgspec.json.encode(reply),
        started=started,
        **fields,
    )


def tool_call(index: int, started: float, name: str, arguments: Any, **fields: Any) -> ToolCall:
    reply = {"url": f"http://a.org/{index}", "title": "", **fields.pop("reply", {})}
    return ToolCall(
        **{"index": index, "name": name, "arguments": arguments, "status": 200, "reply": reply,
           "surface": "native", "started": started, **fields}
    )  # fmt: skip


def test_steps_have_the_thought_that_led_to_them() -> None:
    picture = Image(data=b"png")
    trace = Trace(
        calls=(
            model_call(0, 1.0, {"content": "I look."}),
            model_call(1, 2.5, {"content": "A title"}, kind="side"),
            model_call(2, 3.0, {"content": '{"thought": "I click.", "action": {"name": "click"}}'}),
            model_call(3, 5.0, {"content": [{"type": "text", "text": "I type."}]}),
            model_call(4, 7.0, {"content": "", "reasoning_content": "I wait."}),
            model_call(5, 9.0, {"content": "[" * 100_000}),
            model_call(6, 10.0, {"content": "Done: 5."}),
        ),
        tool_calls=(
            tool_call(0, 2.0, "browser_screenshot", {}, images=("earlier", picture.digest)),
            tool_call(1, 4.0, "browser_click", {"x": 0.5, "y": 0.25}),
            tool_call(2, 6.0, "browser_type", {"text": "a"}, status=409, reply={"error": "no"}),
            tool_call(3, 6.1, "browser_press", {"key": "Enter"}),
            tool_call(4, 6.2, "mail_send", {}),
            tool_call(5, 8.0, "browser_wait", {"seconds": 99}, status=422, reply={"error": "bad"}),
            tool_call(6, 9.5, "browser_back", {}),
        ),
        answer="5",
        images={picture.digest: picture},
    )
    found = evidence(BrowserTask(id="x", prompt="Count.", start="http://a.org/"), trace)
    assert (found.task, found.answer, found.start) == ("Count.", "5", "http://a.org/")
    assert [(step.thought, step.action, step.error) for step in found.steps] == [
        ("I look.", "look at the page", ""),
        ("I click.", "click at (0.500, 0.250)", ""),
        ("I type.", "type 'a'", "no"),
        ("", "press Enter", ""),
        ("", 'mail_send {} -> {"url": "http://a.org/4", "title": ""}', ""),
        ("I wait.", 'browser_wait {"seconds": 99}', "bad"),
        ("[" * 100_000, "go back", ""),
    ]
    assert found.steps[0].screenshot == picture
    assert found.steps[1].screenshot is None
    assert found.steps[1].url == "http://a.org/1"
