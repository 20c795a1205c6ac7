"""The same attempts, graded by us and by claw-eval's own pipeline: the same scores."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from support.claw_eval import CHECKOUT, Anywhere, HashJudge, Thorough, needs_checkout, pipeline

from environments.claw.loader import load_tasks
from environments.claw.task import ClawTask
from harness_wrappers.react import React
from judges.llm import LLMJudge
from rollout.environment import Environment
from rollout.episode import Setup, run_episode
from rollout.gateway.server import Gateway
from rollout.gateway.upstreams.openai import OpenAI
from rollout.grading import grade_trace
from rollout.judge import Judge
from rollout.sandboxes.local import Local
from rollout.types import Call, Episode, Outcome, Trace

EXACT = 1e-9


async def attempt(task: ClawTask, environment: Environment, judge: Judge) -> tuple[Episode, Trace]:
    async with Gateway(Thorough()) as gateway:
        setup = Setup(environment, React(), gateway, Local(), "native", judge)
        return await run_episode(setup, task, 0)


def with_side_calls(trace: Trace) -> Trace:
    """What a harness does beside the agent's own calls must change nothing."""
    last = trace.calls[-1]
    more = [
        Call(
            index=last.index + n,
            dialect="chat",
            kind=kind,
            request=b'{"messages": [{"role": "user", "content": "Make a title."}]}',
            reply=b'{"choices": [{"message": {"role": "assistant", "content": "A title"}}]}',
        )
        for n, kind in enumerate(("side", "compaction", "subagent"), start=1)
    ]
    return Trace(
        calls=(*trace.calls, *more),
        tool_calls=trace.tool_calls,
        answer=trace.answer,
        world=trace.world,
    )


@needs_checkout
@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_scores_agree_on_every_task(tmp_path: Path) -> None:
    """The tasks that run here in their own worlds, the others on canned answers."""
    tasks = load_tasks(CHECKOUT / "tasks")
    environment = Anywhere({task.id for task in tasks if task.skip})
    tasks = [replace(task, skip="") for task in tasks]
    assert len(tasks) == 300
    async with HashJudge() as server:
        upstream = OpenAI("hash", server.url)
        judge = LLMJudge(upstream)
        attempts = [(task, *await attempt(task, environment, judge)) for task in tasks]
        padded = [(task, with_side_calls(trace)) for task, _, trace in attempts]
        theirs = await pipeline(padded, server.url, tmp_path)
        for (task, episode, _), (_, trace), their in zip(attempts, padded, theirs, strict=True):
            if "error" in their:
                assert episode.outcome is Outcome.JUDGE_ERROR, task.id
                continue
            assert episode.outcome.graded, (task.id, episode.reason)
            # As a rescoring grades it: with what the judge cost, too.
            grade = (await grade_trace(environment, task, trace, judge)).grade
            assert grade is not None
            assert episode.grade == grade, task.id
            assert grade.score == pytest.approx(their["score"], abs=EXACT), task.id
            assert grade.parts == pytest.approx(their["parts"], abs=EXACT), task.id
            assert grade.passed == their["passed"], task.id
            assert len(grade.evidence.get("judge_calls", ())) == their["calls"], task.id
        assert sum("error" in their for their in theirs) < 10
        await upstream.close()
