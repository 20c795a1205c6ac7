"""The same attempts, graded by us and by claw-eval's own pipeline: the same scores."""

from pathlib import Path

import pytest
from support.claw_eval import CHECKOUT, HashJudge, Thorough, needs_checkout, pipeline

from environments.claw import Claw
from environments.claw.task import ClawTask, load_tasks
from harness_wrappers.react import React
from judges.llm import LLMJudge
from rollout.episode import Setup, run_episode
from rollout.gateway.server import Gateway
from rollout.gateway.upstreams.openai import OpenAI
from rollout.sandboxes.local import Local
from rollout.types import Call, Episode, Trace

EXACT = 1e-9


async def attempt(task: ClawTask, judge: LLMJudge) -> tuple[Episode, Trace]:
    async with Gateway(Thorough()) as gateway:
        setup = Setup(Claw(), React(), gateway, Local(), "native", judge)
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
@pytest.mark.timeout(900)
async def test_scores_agree_on_every_general_task_that_runs_here(tmp_path: Path) -> None:
    tasks = [task for task in load_tasks(CHECKOUT / "tasks") if task.id[0] == "T" and not task.skip]
    assert len(tasks) > 100
    async with HashJudge() as server:
        upstream = OpenAI("hash", server.url)
        judge = LLMJudge(upstream)
        attempts = [(task, *await attempt(task, judge)) for task in tasks]
        padded = [(task, with_side_calls(trace)) for task, _, trace in attempts]
        theirs = await pipeline(padded, server.url, tmp_path)
        for (task, episode, _), (_, trace), their in zip(attempts, padded, theirs, strict=True):
            grade = await Claw().grade(task, trace, judge)
            assert episode.grade == grade, task.id
            assert grade.score == pytest.approx(their["score"], abs=EXACT), task.id
            assert grade.parts == pytest.approx(their["parts"], abs=EXACT), task.id
            assert grade.passed == their["passed"], task.id
            assert len(grade.evidence.get("judge_calls", ())) == their["calls"], task.id
        await upstream.close()
