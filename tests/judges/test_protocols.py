"""The protocols: what each shows the judge, and what it makes of the replies."""

import re
from base64 import b64encode
from pathlib import Path

import pytest
from support.judges import Asked, ScriptedJudge, evidence, pictures, said

from judges.agenttrek import AgentTrek
from judges.claim_coverage import ClaimCoverage
from judges.options import make_protocol, note, protocols
from judges.rubric import WHOLE, Rubric
from judges.webjudge import WebJudge
from judges.webvoyager import WebVoyager
from rollout.errors import JudgeError, UsageError

SUCCESS = 'Thoughts: all of it.\nStatus: "success"'
POINTS = "**Key Points**:\n1. A pen.\n\n  2. Cheapest.\n"
FAILURE = 'Thoughts: not all.\nStatus: "failure"'


def url(n: int) -> str:
    return f"data:image/png;base64,{b64encode(f'screen {n}'.encode()).decode()}"


class WebJudging(ScriptedJudge):
    """Knows a screenshot's score by its address."""

    def __init__(self, scores: dict[str, str], verdict: str = SUCCESS) -> None:
        super().__init__(lambda text, repeat: verdict if "Actions:" in text else POINTS)
        self._scores = scores

    async def reply(self, messages: Asked, repeat: int = 0) -> str:
        reply = await super().reply(messages, repeat)
        if "The screenshot is attached" in said(messages):
            return self._scores[pictures(messages)[0]]
        return reply


async def test_webjudge_keeps_the_screenshots_that_matter() -> None:
    scores = {
        url(n): f"Reasoning: page {n}\nScore: {score}" for n, score in ((1, 2), (2, 5), (3, 3))
    }
    judge = WebJudging(scores)
    verdict = await WebJudge().verdict(evidence(3), judge)
    assert (verdict.score, verdict.reasoning, verdict.raw) == (1.0, "all of it.", SUCCESS)
    assert len(judge.asked) == 2 + 3
    final = judge.asked[-1]
    assert pictures(final) == [url(2), url(3)]
    assert "Task: Buy the {cheapest} pen" in said(final)
    assert "1. A pen.\n2. Cheapest." in said(final)
    assert "1. click 1\n2. click 2 (failed: no such button)\n3. click 3" in said(final)
    assert "1. page 2\n2. page 3" in said(final)
    shots = verdict.details["screenshots"]
    assert [(s["step"], s["score"], s["kept"]) for s in shots] == [
        (1, 2, False),
        (2, 5, True),
        (3, 3, True),
    ]


async def test_webjudge_without_evidence_still_judges_and_takes_the_first_pictures_only() -> None:
    judge = WebJudging({url(n): "Score: 1" for n in (1, 2)}, FAILURE)
    verdict = await WebJudge().verdict(evidence(2), judge)
    assert verdict.score == 0.0
    assert pictures(judge.asked[-1]) == []
    assert "Remarks" not in said(judge.asked[-1])
    judge = WebJudging({url(n): "Score: 4" for n in range(1, 8)})
    await WebJudge(images=4, threshold=4).verdict(evidence(7), judge)
    assert pictures(judge.asked[-1]) == [url(n) for n in (1, 2, 3, 4)]


async def test_an_unreadable_score_is_asked_again_and_never_made_up() -> None:
    judge = WebJudging({url(1): "a nice page"})
    with pytest.raises(JudgeError, match="no score from 1 to 5"):
        await WebJudge().verdict(evidence(1), judge)
    assert len(judge.asked) == 1 + judge.tries


async def test_agenttrek_sees_thoughts_actions_and_the_end() -> None:
    judge = ScriptedJudge(lambda text, repeat: SUCCESS)
    assert (await AgentTrek().verdict(evidence(4), judge)).score == 1.0
    (asked,) = judge.asked
    assert pictures(asked) == [url(4)]
    assert "Thought 1: because 1\nAction 1: click 1\n\nThought 2: because 2" in said(asked)
    await AgentTrek(k=3).verdict(evidence(4), judge)
    assert pictures(judge.asked[-1]) == [url(2), url(3), url(4)]
    await AgentTrek(k=3).verdict(evidence(0), judge)
    assert isinstance(judge.asked[-1][1]["content"], str)


@pytest.mark.parametrize(
    "reply", ["Status: unsuccessfully", "I am not sure.", 'Status: "success" or "failure"']
)
async def test_no_verdict_is_no_success(reply: str) -> None:
    judge = ScriptedJudge(lambda text, repeat: reply)
    with pytest.raises(JudgeError, match="the judge scripted gave no verdict"):
        await AgentTrek().verdict(evidence(), judge)
    judge = ScriptedJudge(lambda text, repeat: FAILURE if repeat else reply)
    assert (await AgentTrek().verdict(evidence(), judge)).score == 0.0


async def test_webvoyager_sees_the_answer_and_the_last_screenshots() -> None:
    judge = ScriptedJudge(lambda text, repeat: SUCCESS)
    asked_for = evidence(4, answer="<num> pens")
    assert (await WebVoyager(k=2).verdict(asked_for, judge)).score == 1.0
    (asked,) = judge.asked
    assert pictures(asked) == [url(3), url(4)]
    assert "answer: <num> pens\n\nScreenshots at the end: 2" in said(asked)
    await WebVoyager(k=0).verdict(evidence(4), judge)
    assert len(pictures(judge.asked[-1])) == 4


async def test_webvoyager_without_an_answer_has_failed_unasked() -> None:
    judge = ScriptedJudge(lambda text, repeat: SUCCESS)
    assert (await WebVoyager().verdict(evidence(answer=" "), judge)).score == 0.0
    assert judge.asked == []


def by_point(text: str, repeat: int) -> str:
    value = re.search(r"The point: worth ([\d.]+)", text)
    return f'{{"score": {value[1] if value else 0.25}, "reasoning": "so"}}'


@pytest.mark.parametrize(
    ("options", "points", "score"),
    [
        ("rubric", ("worth 1", "worth 0.5"), 0.75),
        ("rubric", ("worth 1", "worth 1.0"), 1.0),
        ("rubric:threshold=0.7", ("worth 1", "worth 0.5"), 1.0),
        ("rubric:aggregate=all", ("worth 1", "worth 0.5"), 0.0),
        ("rubric:aggregate=all", ("worth 1", "worth 1"), 1.0),
        ("rubric", (), 0.25),
    ],
)
async def test_rubric_scores_each_point(options: str, points, score: float) -> None:
    judge = ScriptedJudge(by_point)
    verdict = await make_protocol(options).verdict(evidence(5, rubric=points), judge)
    assert verdict.score == score
    assert [each["point"] for each in verdict.details["points"]] == list(points or (WHOLE,))
    assert len(judge.asked) == max(1, len(points))
    assert "2. click 2 (failed: no such button)" in said(judge.asked[0])
    assert pictures(judge.asked[0]) == [url(3), url(4), url(5)]


def by_claim(text: str, repeat: int) -> str:
    return f"Reasoning: it says so.\nCoverage: {text.split('The claim: ')[1]}"


@pytest.mark.parametrize(
    ("claims", "threshold", "score", "coverage"),
    [
        (("covered", "not covered"), 1.0, 0.5, 0.5),
        (("**covered**", "partly covered", "uncovered", "Partially covered."), 1.0, 0.5, 0.5),
        (("covered", "partly covered"), 0.75, 1.0, 0.75),
        (("fully covered",), 1.0, 1.0, 1.0),
    ],
)
async def test_claims_are_counted(claims, threshold: float, score: float, coverage: float) -> None:
    protocol = ClaimCoverage(threshold=threshold)
    verdict = await protocol.verdict(evidence(rubric=claims), ScriptedJudge(by_claim))
    assert (verdict.score, verdict.details["coverage"]) == (score, coverage)


@pytest.mark.parametrize("said", ["mostly", "covered, partly covered, or not covered", ""])
async def test_an_unclear_coverage_is_no_coverage(said: str) -> None:
    with pytest.raises(JudgeError, match="no line `Coverage"):
        await ClaimCoverage().verdict(evidence(rubric=(said,)), ScriptedJudge(by_claim))


async def test_claims_need_claims_and_an_empty_answer_covers_none() -> None:
    judge = ScriptedJudge(by_claim)
    with pytest.raises(JudgeError, match="names no claims"):
        await ClaimCoverage().verdict(evidence(), judge)
    verdict = await ClaimCoverage().verdict(evidence(answer="", rubric=("covered",)), judge)
    assert (verdict.score, judge.asked) == (0.0, [])


async def test_one_failure_ends_the_other_questions() -> None:
    class Broken(ScriptedJudge):
        async def reply(self, messages, repeat=0):
            await super().reply(messages, repeat)
            raise JudgeError("out of reach")

    with pytest.raises(JudgeError, match="out of reach"):
        await Rubric().verdict(evidence(rubric=("a", "b")), Broken(by_point))


def test_protocols_are_found_by_name_and_say_what_they_are() -> None:
    assert protocols() == ["agenttrek", "claim_coverage", "rubric", "webjudge", "webvoyager"]
    for name in protocols():
        told = make_protocol(name).fingerprint()
        assert (told["name"], told["prompts"]) == (name, "own")
        assert len(told["prompts_sha256"]) == 64
    assert make_protocol("webjudge:threshold=4,images=9").fingerprint()["threshold"] == 4
    assert note(make_protocol("agenttrek:k=3")) == (
        "judged by agenttrek, k 3; prompts: own (scores under other prompts are not comparable)"
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("webjuge", "did you mean 'webjudge'"),
        ("cache", "unknown protocol 'cache'"),
        ("webjudge:thresh=3", "'thresh=3' is no option; it has: threshold=3, images=50"),
        ("webjudge:threshold", "is no option"),
        ("webjudge:threshold=x", "threshold=x must be a whole number"),
        ("webjudge:threshold=6", "threshold=6 must be from 1 to 5"),
        ("agenttrek:k=0", "k=0 must be from 1 to 50"),
        ("rubric:aggregate=max", "must be mean or all"),
        ("rubric:threshold=nan", "must be from 0 to 1"),
    ],
)
def test_a_bad_spec_is_said_in_a_line(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        make_protocol(spec)


def test_protocols_of_ours_have_no_official_prompts(tmp_path: Path) -> None:
    for name in ("rubric", "claim_coverage"):
        with pytest.raises(UsageError, match="has no official prompts"):
            make_protocol(name, tmp_path)


async def test_a_protocol_may_live_elsewhere(tmp_path: Path) -> None:
    polite = make_protocol("support.polite:words=2")
    verdict = await polite.verdict(evidence(), ScriptedJudge(lambda text, repeat: '{"score": 1}'))
    assert verdict.score == 1.0
    assert note(polite).startswith("judged by Polite")
    with pytest.raises(UsageError, match="has no official prompts"):
        make_protocol("support.polite", tmp_path)
    with pytest.raises(UsageError, match="'n=1' is no option; it has: words=1"):
        make_protocol("support.polite:n=1")
