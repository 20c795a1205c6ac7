"""What a judge costs is counted, what was said before costs nothing, and few questions go at once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.judges import evidence
from support.scripted_server import Fail, ScriptedServer, Stall, text
from support.toys import Notes, note_task

from judges.agenttrek import AgentTrek
from judges.cache import JudgeCache
from judges.llm import LLMJudge
from judges.rubric import Rubric
from rollout.gateway.retry import Retry
from rollout.gateway.upstreams.openai import OpenAI
from rollout.grading import grade_trace
from rollout.judge import Judge
from rollout.protocol import Evidence
from rollout.types import Grade, Image, Outcome, Task, Trace, Usage

GOOD = '{"score": 1, "reasoning": "good"}'
SUCCESS = 'Status: "success"'
QUICK = Retry(tries=2, base=0.001)


def judge(server: ScriptedServer, cache: Path | None = None, **more: Any) -> LLMJudge:
    kept = JudgeCache(cache) if cache else None
    return LLMJudge(OpenAI("scripted", server.url), kept, QUICK, **more)


class ByProtocol(Notes):
    """Graded by a judge that is shown two screenshots."""

    async def grade(self, task: Task, trace: Trace, judge: Judge | None = None) -> Grade:
        assert judge is not None
        verdict = await AgentTrek(k=3).verdict(evidence(2), judge)
        return Grade(score=verdict.score, passed=verdict.score >= 1)


async def closed(used: LLMJudge) -> None:
    await used._upstream.close()


async def test_the_tokens_of_a_grade_stand_in_its_evidence(tmp_path: Path) -> None:
    async with ScriptedServer() as server:
        server.default = text(SUCCESS)
        asked = judge(server, tmp_path / "cache")
        first = await grade_trace(ByProtocol(), note_task(), Trace(), asked)
        again = await grade_trace(ByProtocol(), note_task(), Trace(), asked)
        await closed(asked)
    paid = {"model": "scripted", "calls": 1, "cached": 0, "usage": {"prompt": 10, "completion": 2}}
    kept = {"model": "scripted", "calls": 0, "cached": 1, "usage": {}}
    assert first.grade is not None
    assert again.grade is not None
    assert (first.grade.evidence["judge_spent"], again.grade.evidence["judge_spent"]) == (
        paid,
        kept,
    )
    assert (asked.spent.calls, asked.spent.cached) == (1, 1)
    assert asked.spent.usage == Usage(prompt=10, completion=2)


async def test_a_dead_judge_leaves_the_attempt_ungraded() -> None:
    async with ScriptedServer() as server:
        asked = judge(server)
    verdict = await grade_trace(ByProtocol(), note_task(), Trace(), asked)
    await closed(asked)
    assert (verdict.outcome, verdict.cause, verdict.grade) == (Outcome.JUDGE_ERROR, "judge", None)
    assert "the judge scripted is out of reach" in verdict.reason


async def test_other_pictures_are_another_question(tmp_path: Path) -> None:
    shown = [evidence(1), evidence(2)]
    async with ScriptedServer() as server:
        server.default = text(SUCCESS)
        asked = judge(server, tmp_path / "cache")
        for each in (*shown, *shown):
            steps = (each.steps[-1],)
            await AgentTrek().verdict(Evidence(task="t", steps=_unworded(steps)), asked)
        await closed(asked)
    assert (asked.spent.calls, asked.spent.cached) == (2, 2)


def _unworded(steps: Any) -> Any:
    """Steps that differ in nothing but their picture."""
    return tuple(type(step)(action="look", screenshot=step.screenshot) for step in steps)


async def test_no_more_questions_at_once_than_allowed() -> None:
    stalls = [Stall(text(GOOD)) for _ in range(6)]
    async with ScriptedServer() as server:
        server.queue(*stalls)
        asked = judge(server, parallel=2)
        points = tuple(f"point {n}" for n in range(6))
        verdict = asyncio.create_task(Rubric().verdict(evidence(rubric=points), asked))
        for n, stall in enumerate(stalls):
            await stall.reached.wait()
            assert len(server.requests) <= n + 2
            stall.released.set()
        assert (await verdict).score == 1.0
        await closed(asked)


async def test_a_reasoning_model_is_asked_in_its_own_terms() -> None:
    refusal = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    async with ScriptedServer() as server:
        server.queue(Fail(400, refusal))
        server.default = text(GOOD)
        asked = judge(server, temperature=None)
        for _ in range(2):
            await asked.ask([{"role": "user", "content": "?"}])
        await closed(asked)
    caps = [sorted(request.body.keys() - {"model", "messages"}) for request in server.requests]
    assert caps == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]
    assert asked.fingerprint()["temperature"] is None


async def test_half_an_emoji_does_not_stop_a_judge(tmp_path: Path) -> None:
    async with ScriptedServer() as server:
        server.default = text(SUCCESS)
        asked = judge(server, tmp_path / "cache")
        broken = Evidence(task="t\ud83d", answer="a", steps=evidence(1).steps)
        assert (await AgentTrek().verdict(broken, asked)).score == 1.0
        await closed(asked)


@pytest.mark.parametrize("media_type", ["image/png", "image/jpeg"])
async def test_pictures_travel_as_data_addresses(media_type: str) -> None:
    async with ScriptedServer() as server:
        server.default = text(SUCCESS)
        asked = judge(server)
        step = type(evidence(1).steps[0])(
            action="a", screenshot=Image(data=b"x", media_type=media_type)
        )
        await AgentTrek().verdict(Evidence(task="t", steps=(step,)), asked)
        await closed(asked)
    part = server.requests[0].body["messages"][1]["content"][1]
    assert part["image_url"] == {"url": f"data:{media_type};base64,eA==", "detail": "high"}
