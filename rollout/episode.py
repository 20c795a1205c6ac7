"""One episode, from an empty world to a grade. The only place that knows the order of things.

    open the world -> open a gateway session -> open the sandbox -> run the harness
    -> seal the session -> snapshot the world -> close the sandbox -> grade from the records

Whatever goes wrong becomes the episode's outcome; only cancellation is raised.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rollout.contract import returned
from rollout.environment import Environment, Surface, World
from rollout.errors import (
    Blocked,
    EnvironmentFault,
    HarnessError,
    RolloutError,
    SandboxError,
    boundary,
)
from rollout.gateway.server import Gateway
from rollout.gateway.session import Session
from rollout.gateway.tools import skills
from rollout.grading import AttemptResult, grade_trace
from rollout.harness import Finish, Harness, Job
from rollout.judge import Judge
from rollout.sandbox import Limits, Sandbox, SandboxProvider, SandboxSpec
from rollout.text import one_line
from rollout.types import (
    Episode,
    JsonObject,
    Outcome,
    Task,
    Timing,
    ToolSurface,
    Trace,
    Usage,
)

__all__ = ["Setup", "run_episode"]

FRUITLESS_SHARE = 0.5
"""A timeout counts as an infrastructure error when more than this share of the limit was spent waiting
for model calls that were not answered."""

SHORTEST_WAIT = 0.05
"""Seconds between two looks at a clock that is about to run out: in a pause it stands still there."""


@dataclass(frozen=True)
class Setup:
    """What all episodes of a run share."""

    environment: Environment
    harness: Harness
    gateway: Gateway
    sandboxes: SandboxProvider
    surface: ToolSurface
    judge: Judge | None = None
    timeout: float | None = None
    """Overrides each task's own wall-clock limit, seconds."""
    limits: Limits = field(default_factory=Limits)
    paused: Callable[[], float] = lambda: 0.0
    """Seconds for which the run has been paused so far: a trainer that replaces weights holds model calls
    back meanwhile. No attempt's clock runs in that time."""


@dataclass
class _Ending:
    """What is known once the harness is gone; filled in as the episode goes on."""

    session: Session | None = None
    finish: Finish | None = None
    error: RolloutError | None = None
    timed_out: float = 0.0
    """The limit that was reached, seconds; 0 when it was not."""
    setup_seconds: float = 0.0
    world: JsonObject = field(default_factory=dict)

    @property
    def limit(self) -> str:
        """The limit other than the clock that ended the attempt, in words."""
        stop = self.session.stop if self.session else None
        reason = stop.result().reason if stop is not None and stop.done() else ""
        return reason or (self.finish.gave_up if self.finish else "")

    def trace(self) -> Trace:
        return Trace(
            calls=tuple(self.session.calls) if self.session else (),
            tool_calls=tuple(self.session.tool_calls) if self.session else (),
            answer=self.finish.answer if self.finish else "",
            world=self.world,
            log=self.finish.log if self.finish else "",
            images=dict(self.session.images) if self.session else {},
        )


async def run_episode(
    setup: Setup, task: Task, attempt: int, *, retry: int = 0, seed: int = 0
) -> tuple[Episode, Trace]:
    """Attempt a task once. Never raises for a bad rollout: see `Episode.outcome`."""
    started, begin = time.time(), time.perf_counter()
    ending = _Ending()
    if not task.skip:
        await _drive(setup, task, seed, ending)
    driven = time.perf_counter()
    trace = ending.trace()
    result = _without_grading(task, ending) or await grade_trace(
        setup.environment, task, trace, setup.judge
    )
    limit = ending.limit
    result = result.limited(ending.timed_out, limit)
    end = time.perf_counter()
    session = ending.session
    episode = Episode(
        id=f"{task.id}#{attempt}" + (f".{retry}" if retry else ""),
        task_id=task.id,
        attempt=attempt,
        retry=retry,
        seed=seed,
        outcome=result.outcome,
        cause=result.cause,
        reason=one_line(result.reason),
        detail=result.detail,
        grade=result.grade,
        calls=len(trace.calls),
        tool_calls=len(trace.tool_calls),
        usage=session.usage if session else Usage(),
        timing=Timing(
            total=end - begin,
            setup=ending.setup_seconds,
            model=session.model_seconds if session else 0.0,
            tools=session.tool_seconds if session else 0.0,
            grading=end - driven,
        ),
        started=started,
        exit_code=ending.finish.exit_code if ending.finish else None,
        timed_out=ending.timed_out,
        limit=limit,
    )
    return episode, trace


async def _drive(setup: Setup, task: Task, seed: int, ending: _Ending) -> None:
    """Everything up to the snapshot. Errors end up in `ending.error`."""
    begin = time.perf_counter()
    try:
        async with _opened_world(setup, task, seed) as world:
            ending.session = session = setup.gateway.open(
                task=task,
                seed=seed,
                surface=setup.surface,
                dispatch=world.call,
                classify=setup.harness.classify,
                locate=world.locate,
            )
            try:
                async with _opened_sandbox(setup, world.surface) as sandbox:
                    ending.setup_seconds = time.perf_counter() - begin
                    try:
                        await _work(setup, task, world, sandbox, ending)
                    finally:
                        # Sealed before the world is looked at: nothing may change between the two.
                        setup.gateway.close(session)
                        with boundary(EnvironmentFault, "taking the snapshot"):
                            ending.world = returned(
                                await world.snapshot(sandbox), dict, "snapshot()"
                            )
            finally:
                setup.gateway.close(session)
    except RolloutError as error:
        ending.error = error


@asynccontextmanager
async def _opened_world(setup: Setup, task: Task, seed: int) -> AsyncIterator[World]:
    manager = setup.environment.open(task, seed)
    with boundary(EnvironmentFault, "opening the world"):
        world = _sound_world(await manager.__aenter__())
    try:
        yield world
    finally:
        with boundary(EnvironmentFault, "closing the world"):
            await manager.__aexit__(None, None, None)


def _sound_world(world: World) -> World:
    """The world. Raises TypeError for what is none."""
    returned(world, World, "open()")
    name = type(world).__name__
    surface = returned(getattr(world, "surface", None), Surface, f"{name}.surface")
    if surface.tools and type(world).call is World.call:
        raise TypeError(f"{name} offers tools, and defines no call()")
    return world


@asynccontextmanager
async def _opened_sandbox(setup: Setup, surface: Surface) -> AsyncIterator[Sandbox]:
    spec = SandboxSpec(
        gateway_socket=setup.gateway.socket,
        gateway_port=setup.gateway.port,
        programs=setup.harness.program_folders,
        limits=setup.limits,
    )
    manager = setup.sandboxes.open(spec)
    with boundary(SandboxError, f"starting a {setup.sandboxes.name} sandbox"):
        sandbox = await manager.__aenter__()
    try:
        with boundary(SandboxError, "placing the task's files"):
            await sandbox.write({f"{sandbox.workspace}/{p}": b for p, b in surface.files.items()})
        yield sandbox
    finally:
        with boundary(SandboxError, "stopping the sandbox"):
            await manager.__aexit__(None, None, None)


async def _work(setup: Setup, task: Task, world: World, sandbox: Sandbox, ending: _Ending) -> None:
    """Run the harness until it ends, the session is stopped from outside, or the clock runs out."""
    session = ending.session
    assert session is not None
    job = _job(setup, task, world, session, sandbox)
    limit = setup.timeout or task.timeout
    harness = asyncio.create_task(setup.harness.run(job, sandbox))
    try:
        ends: set[asyncio.Future[Any]] = {harness, session.stop}
        await _first_of(ends, limit, setup.paused)
        if harness.done():
            with boundary(HarnessError, "running the harness"):
                finish = returned(harness.result(), Finish, "the harness")
                ending.finish = _attributed(finish, session)
        elif not session.stop.done():
            ending.timed_out = limit
    finally:
        harness.cancel()
        await asyncio.wait({harness})


async def _first_of(
    ends: Collection[asyncio.Future[Any]], limit: float, paused: Callable[[], float]
) -> None:
    """Wait for one of them, `limit` seconds at most; pauses don't count."""
    end = time.monotonic() - paused() + limit
    while (left := end - time.monotonic() + paused()) > 0:
        patience = max(left, SHORTEST_WAIT)
        done, _ = await asyncio.wait(ends, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        if done:
            return


def _attributed(finish: Finish, session: Session) -> Finish:
    """The ending, with what the gateway knows of it: programs say little of why they failed."""
    if session.without_tools and session.calls:
        raise HarnessError("it went on without the task's tools: it never asked for them over MCP")
    gave_up = finish.gave_up or session.dead_end
    if finish.failed and not gave_up:
        raise HarnessError(finish.failed)
    gave_up = "; ".join(filter(None, (gave_up, finish.failed)))
    return replace(finish, gave_up=gave_up)


def _job(setup: Setup, task: Task, world: World, session: Session, sandbox: Sandbox) -> Job:
    surface = world.surface
    inside = setup.gateway.endpoint(session, sandbox.gateway)
    outside = setup.gateway.endpoint(session, setup.gateway.url)
    native, skill = setup.surface == "native", setup.surface == "skill"
    return Job(
        prompt=surface.prompt,
        endpoint=outside if setup.harness.program is None else inside,
        surface=setup.surface,
        tools=surface.tools,
        skills=skills(surface.tools, inside.tools_url) if skill else {},
        call_tool=session.call_tool if native else None,
        max_turns=task.max_turns,
        reply=partial(session.ask_user, world.reply) if surface.user else None,
    )


def _without_grading(task: Task, ending: _Ending) -> AttemptResult | None:
    """The result where the attempt can't be graded; None when it can."""
    if task.skip:
        return AttemptResult(Outcome.SKIPPED, reason=task.skip)
    error, session = ending.error, ending.session
    if isinstance(error, Blocked):
        return AttemptResult.ungraded(Outcome.BLOCKED, error)
    blamed = _infrastructure(ending)
    if blamed is None and error is not None:
        return AttemptResult.ungraded(Outcome.INFRA_ERROR, error)
    if blamed is None and session is not None and not session.calls:
        blamed = "harness", "the harness ended without asking the model"
    return AttemptResult(Outcome.INFRA_ERROR, cause=blamed[0], reason=blamed[1]) if blamed else None


def _infrastructure(ending: _Ending) -> tuple[str, str] | None:
    """What the gateway saw go wrong: the real cause behind a harness that only says 'exit 1'."""
    session = ending.session
    if session is None:
        return None
    if session.fault is not None:
        return session.fault.cause, str(session.fault)
    stop = session.stop.result() if session.stop.done() else None
    if stop is not None and stop.cause != "policy":
        return stop.cause, stop.reason
    answered = any(call.status == 200 for call in session.calls)
    if session.refused and (ending.error is not None or not answered):
        return "model", f"the model server refused a call: {session.refused}"
    if ending.timed_out and session.fruitless_seconds > FRUITLESS_SHARE * ending.timed_out:
        waited = f"{session.fruitless_seconds:.0f} s of {ending.timed_out:.0f} s"
        return "model", f"timed out after waiting {waited} for a model server that did not answer"
    if ending.timed_out and session.hanging_seconds > FRUITLESS_SHARE * ending.timed_out:
        waited = f"{session.hanging_seconds:.0f} s of {ending.timed_out:.0f} s"
        return (
            "environment",
            f"timed out after waiting {waited} for a tool or user that did not answer",
        )
    return None
