"""Episodes end with the right outcome and the right cause, whatever goes wrong."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from support.toys import Acting, Fake, NoSandbox, Notes, NotesWorld, ask, note_task, save_note

from rollout.environment import Surface, World
from rollout.episode import Setup, run_episode
from rollout.errors import Blocked, HarnessError
from rollout.gateway.retry import Retry
from rollout.gateway.server import Gateway
from rollout.gateway.upstream import ModelReply, ModelRequest, Refused, Transient, Upstream
from rollout.grading import grade_again
from rollout.harness import Finish, Harness, Job, Launch
from rollout.sandbox import ExecResult, Sandbox
from rollout.sandboxes.local import Local
from rollout.types import JsonObject, Outcome, Task, Usage


@asynccontextmanager
async def setup(
    act: Any = save_note, *, upstream: Upstream | None = None, broken: str = "", **fields: Any
) -> AsyncIterator[Setup]:
    async with Gateway(upstream or Fake(), retry=Retry(tries=2, base=0.001)) as gateway:
        yield Setup(
            environment=Notes(broken),
            harness=Acting(act),
            gateway=gateway,
            sandboxes=Local(),
            surface="native",
            **fields,
        )


async def test_a_passed_episode_keeps_everything() -> None:
    async with setup() as ready:
        episode, trace = await run_episode(ready, note_task(), 2, seed=7)
    assert episode.id == "milk#2"
    assert episode.outcome is Outcome.PASSED
    assert (episode.calls, episode.tool_calls) == (1, 1)
    assert episode.usage == Usage(prompt=10, completion=2)
    assert trace.world == {"notes": ["milk"]}
    assert trace.answer == "saved"
    assert [(call.name, call.arguments, call.status) for call in trace.tool_calls] == [
        ("notes_add", {"text": "milk"}, 200)
    ]
    assert episode.timing.total > 0


async def test_a_program_that_a_limit_ended_is_graded_like_any_other() -> None:
    """What the agent started used too much: an error of the infrastructure would be tried again."""

    class Limited(NoSandbox):
        async def write(self, files: object) -> None:
            pass

        async def exec(self, *_: object, **__: object) -> ExecResult:
            return ExecResult(-9, b"", b"hm", limit="more than 9 processes")

    async def act(job: Job) -> str:
        await ask(job)
        finish = await Bomb().run(job, Limited())
        assert (finish.gave_up, finish.log) == ("used more than 9 processes", "hm")
        return finish.gave_up

    async with setup(act) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert episode.outcome is Outcome.FAILED, episode.reason


class Bomb(Harness):
    dialect = "chat"
    surfaces = ("native",)

    def launch(self, job: Job, sandbox: Sandbox) -> Launch:
        return Launch(("bomb",))


async def test_a_failed_episode_says_why() -> None:
    async def only_ask(job: Job) -> str:
        await ask(job)
        return "I did nothing"

    async with setup(only_ask) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.reason) == (Outcome.FAILED, "no note")


async def test_a_task_that_can_not_run_is_skipped_with_its_reason() -> None:
    async with setup() as ready:
        episode, _ = await run_episode(ready, note_task(skip="needs a key"), 0)
    assert (episode.outcome, episode.reason) == (Outcome.SKIPPED, "needs a key")


async def raise_harness(job: Job) -> str:
    await ask(job)
    raise HarnessError("exit 139")


async def raise_anything(job: Job) -> str:
    await ask(job)
    raise ValueError("a bug")


async def never_ask(job: Job) -> str:
    return "I know the answer"


async def explode(job: Job) -> str:
    await ask(job)
    assert job.call_tool is not None
    await job.call_tool("notes_add", {"text": "explode"})
    await asyncio.Event().wait()
    return ""


@pytest.mark.parametrize(
    ("act", "broken", "cause", "reason"),
    [
        (raise_harness, "", "harness", "exit 139"),
        (raise_anything, "", "harness", "a bug"),
        (never_ask, "", "harness", "without asking the model"),
        (explode, "", "environment", "on fire"),
        (save_note, "open", "environment", "no paper"),
    ],
)
async def test_an_infrastructure_error_names_its_boundary(
    act: Any, broken: str, cause: str, reason: str
) -> None:
    async with setup(act, broken=broken) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, cause)
    assert reason in episode.reason


async def test_a_crash_keeps_its_traceback() -> None:
    async with setup(save_note, broken="open") as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert "\n" not in episode.reason
    assert episode.detail.startswith("Traceback")
    assert "OSError: no paper" in episode.detail


@pytest.mark.parametrize(
    ("broken", "cause", "reason"),
    [
        ("judge", "judge", "asleep"),
        ("grade", "environment", "no red pen"),
        ("score", "environment", "the score nan is not in [0, 1]"),
    ],
)
async def test_a_judge_or_grader_that_fails_leaves_the_attempt_ungraded(
    broken: str, cause: str, reason: str
) -> None:
    async with setup(broken=broken) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.cause) == (Outcome.JUDGE_ERROR, cause)
    assert reason in episode.reason


async def test_a_blocked_site_is_neither_passed_nor_failed() -> None:
    async def captcha(job: Job) -> str:
        await ask(job)
        raise Blocked("captcha")

    async with setup(captcha) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.reason) == (Outcome.BLOCKED, "captcha")


async def test_a_dead_model_server_is_the_cause_and_the_harness_never_sees_it() -> None:
    seen: list[Any] = []

    async def watch(job: Job) -> str:
        seen.append(await ask(job))
        return "unreachable"

    async with setup(watch, upstream=Fake(Transient("connection refused"))) as ready:
        episode, trace = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "model")
    assert "connection refused" in episode.reason
    assert not seen
    assert not trace.calls


async def test_a_refusal_behind_a_crash_is_the_models() -> None:
    async def crash_on_refusal(job: Job) -> str:
        status, _ = await ask(job)
        raise HarnessError(f"exit 1 after {status}")

    async with setup(crash_on_refusal, upstream=Fake(Refused("bad model name", 404))) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "model")
    assert "bad model name" in episode.reason


async def test_a_harness_that_was_only_refused_did_not_fail_by_its_policy() -> None:
    async def shrug(job: Job) -> str:
        status, _ = await ask(job)
        return f"the model said {status}"

    async with setup(shrug, upstream=Fake(Refused("bad model name", 404))) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "model")


class Failing(Acting):
    """Asks the model, and says that it failed."""

    async def run(self, job: Job, sandbox: Sandbox) -> Finish:
        await ask(job)
        return Finish(exit_code=1, failed="exit 1")


class Cut(Fake):
    """Its replies end otherwise than by themselves."""

    def __init__(self, finish: str) -> None:
        super().__init__()
        self.finish = finish

    async def complete(self, request: ModelRequest) -> ModelReply:
        return replace(await super().complete(request), finish=self.finish)


@pytest.mark.parametrize(
    ("upstream", "why"),
    [
        (Fake(Refused("too long", 400, "context_length_exceeded")), "context window; exit 1"),
        (Fake(Refused("no", 400, "invalid_prompt")), "the model refused to go on; exit 1"),
        (Cut("content_filter"), "the model refused to go on; exit 1"),
        (Cut("length"), "cut at its token limit; exit 1"),
        (Fake(text=""), "the last reply was empty; exit 1"),
    ],
)
async def test_a_failure_after_the_policys_dead_end_is_the_policys(
    upstream: Upstream, why: str
) -> None:
    async with setup(upstream=upstream) as ready:
        ready = replace(ready, harness=Failing(save_note))
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.cause, episode.exit_code) == (Outcome.FAILED, "policy", 1)
    assert why in episode.reason


@pytest.mark.parametrize(
    ("upstream", "cause"),
    [(Fake(), "harness"), (Fake(Refused("no such model", 404, "model_not_found")), "model")],
)
async def test_a_failure_after_anything_else_is_not(upstream: Upstream, cause: str) -> None:
    async with setup(upstream=upstream) as ready:
        ready = replace(ready, harness=Failing(save_note))
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, cause)


async def test_a_harness_that_never_saw_the_tools_is_at_fault_and_not_its_policy() -> None:
    async def only_ask(job: Job) -> str:
        await ask(job)
        return "I have no tools"

    async with setup(only_ask) as ready:
        episode, _ = await run_episode(replace(ready, surface="mcp"), note_task(), 0)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "harness")
    assert "without the task's tools" in episode.reason


async def test_time_that_the_policy_used_up_is_a_failure_and_keeps_its_grade() -> None:
    async def dawdle(job: Job) -> str:
        await save_note(job)
        await asyncio.Event().wait()
        return ""

    async with setup(dawdle, timeout=0.2) as ready:
        episode, trace = await run_episode(ready, note_task(), 0)
        assert await grade_again(ready.environment, note_task(), episode, trace) == episode
    assert (episode.outcome, episode.cause) == (Outcome.FAILED, "policy")
    assert "out of time" in episode.reason
    assert episode.grade is not None
    assert episode.grade.passed


async def test_no_clock_runs_while_the_run_is_held() -> None:
    asked: list[float] = []
    released = asyncio.Event()

    def paused() -> float:
        asked.append(len(asked) * 0.3)
        if len(asked) == 5:
            released.set()
        return asked[-1]

    async def wait(job: Job) -> str:
        answer = await save_note(job)
        await released.wait()
        return answer

    async with setup(wait, timeout=0.1, paused=paused) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.timed_out) == (Outcome.PASSED, 0.0)


async def test_time_that_a_silent_server_used_up_is_an_infrastructure_error() -> None:
    async with setup(upstream=Fake(hang=True), timeout=0.2) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "model")


@pytest.mark.parametrize("what", ["call", "reply"])
async def test_time_that_a_silent_world_used_up_is_an_infrastructure_error(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silence(*_: object) -> None:
        await asyncio.Event().wait()

    async def act(job: Job) -> str:
        await ask(job)
        if what == "call":
            return await save_note(job)
        assert job.reply is not None
        return await job.reply("done?") or ""

    def world(self: NotesWorld, task: Task) -> None:
        self.surface = Surface(prompt=task.prompt, tools=task.tools, user=True)
        self.notes = []

    monkeypatch.setattr(NotesWorld, "__init__", world)
    monkeypatch.setattr(NotesWorld, what, silence)
    async with setup(act, timeout=0.2) as ready:
        episode, _ = await run_episode(ready, note_task(), 0)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "environment")
    assert "a tool or user that did not answer" in episode.reason


async def test_the_turn_limit_ends_the_episode_and_the_world_is_graded() -> None:
    async def talk_on(job: Job) -> str:
        await save_note(job)
        while True:
            await ask(job, text="again")
            await ask(job, text="and again")

    async with setup(talk_on) as ready:
        episode, trace = await run_episode(ready, note_task(max_turns=3), 0)
    assert (episode.outcome, episode.cause) == (Outcome.PASSED, "policy")
    assert len(trace.calls) == 3


async def test_cancelling_an_episode_cancels_the_harness() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait_forever(job: Job) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    async with setup(wait_forever) as ready:
        episode = asyncio.create_task(run_episode(ready, note_task(), 0))
        await started.wait()
        episode.cancel()
        with pytest.raises(asyncio.CancelledError):
            await episode
    assert ended.is_set()


async def test_the_snapshot_is_taken_in_the_open_sandbox_once_the_session_is_sealed() -> None:
    class Looking(NotesWorld):
        async def snapshot(self, sandbox: Sandbox) -> JsonObject:
            printed = await sandbox.exec(("cat", "kept.txt"), env={}, cwd=sandbox.workspace)
            return {"notes": self.notes, "kept": printed.stdout.decode()}

    class Study(Notes):
        @asynccontextmanager
        async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
            yield Looking(task)

    class Keeping(Acting):
        async def run(self, job: Job, sandbox: Sandbox) -> Finish:
            await sandbox.write({f"{sandbox.workspace}/kept.txt": "left behind"})
            return await super().run(job, sandbox)

    async with setup() as ready:
        ready = replace(ready, environment=Study(), harness=Keeping(save_note))
        episode, trace = await run_episode(ready, note_task(), 0)
    assert trace.world == {"notes": ["milk"], "kept": "left behind"}
    assert episode.outcome is Outcome.PASSED
