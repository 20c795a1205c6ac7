"""From names to a running setup: plug-ins found, programs and servers checked, the gateway started."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from judges.llm import TEMPERATURE
from judges.options import open_judge
from rollout import sandboxes
from rollout.contract import check
from rollout.environment import Environment
from rollout.episode import Setup
from rollout.errors import UsageError, boundary
from rollout.gateway.server import Gateway
from rollout.gateway.upstream import Upstream
from rollout.harness import Harness
from rollout.plugins import load
from rollout.suite import Suite
from rollout.types import Task, ToolSurface
from suites.command.options import Options

__all__ = ["fitted", "make_harness", "make_upstream", "open_setup", "unjudged"]

NEEDS_JUDGE = "needs a judge (--judge openai:NAME)"


@asynccontextmanager
async def open_setup(
    suite: Suite,
    options: Options,
    folder: Path | None = None,
    *,
    policy: Upstream | None = None,
) -> AsyncIterator[Setup]:
    """Everything that the episodes of a run share. Raises UsageError for what can't work.

    `folder` is the run's: where its judge's replies are kept, if nowhere else is asked for. `policy`
    answers the model calls in place of the upstream that `options` name; whoever made it closes it.
    """
    with boundary(UsageError, f"suite {suite.name}: environment()"):
        environment = suite.environment()
    check(environment, Environment)
    harness = make_harness(options.harness, options.harness_program)
    surface = _surface(options, harness, environment)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(environment.close)
        upstream = policy or make_upstream(options.model, options.base_url)
        if upstream.scripted and options.base_url and not options.judge:
            raise UsageError(f"--base-url: --model {options.model} has no server; leave one out")
        if policy is None:
            stack.push_async_callback(upstream.close)
        _check_judge(options)
        address = options.judge_base_url or options.base_url
        opened = open_judge(
            options.judge,
            address,
            options.judge_cache or folder,
            temperature=options.judge_temperature,
        )
        judge = await stack.enter_async_context(opened)
        await harness.prepare()
        provider = await sandboxes.choose(options.sandbox)
        await upstream.check()
        await environment.prepare()
        gateway = await stack.enter_async_context(
            Gateway(upstream, sampling=options.sampling, max_output=options.max_tokens)
        )
        yield Setup(
            environment=environment,
            harness=harness,
            gateway=gateway,
            sandboxes=provider,
            surface=surface,
            judge=judge,
            timeout=options.timeout,
        )


def fitted(suite: Suite, tasks: Sequence[Task], setup: Setup) -> list[Task]:
    """The tasks, those that can't run under this setup marked with the reason.

    Raises UsageError for a harness that none of them is for.
    """
    beyond = [setup.harness.unfit(task) for task in tasks]
    if tasks and all(beyond):
        raise UsageError(f"--harness: {beyond[0]}")
    fit = [
        msgspec.structs.replace(
            task,
            skip=task.skip
            or unfit
            or suite.unfit(task, setup)
            or setup.gateway.upstream.unfit(task),
        )
        for task, unfit in zip(tasks, beyond, strict=True)
    ]
    return fit if setup.judge else unjudged(fit)


def unjudged(tasks: Sequence[Task]) -> list[Task]:
    """The tasks, those that nobody can grade without a judge marked with that reason."""
    return [
        msgspec.structs.replace(task, skip=task.skip or (NEEDS_JUDGE if task.judged else ""))
        for task in tasks
    ]


def _check_judge(options: Options) -> None:
    """Raise UsageError for an option of a judge that nobody named."""
    if options.judge:
        return
    for name, idle in (
        ("judge_base_url", ""),
        ("judge_cache", None),
        ("judge_temperature", TEMPERATURE),
    ):
        if getattr(options, name) != idle:
            raise UsageError(f"--{name.replace('_', '-')}: needs --judge SPEC")


def make_harness(spec: str, program: str = "") -> Harness:
    """`NAME[:PRESET]` -> `harness_wrappers.NAME`."""
    name, named, preset = spec.partition(":")
    harness = load("harness_wrappers", name, Harness)(program, preset if named else "default")
    check(harness, Harness)
    if type(harness).run is Harness.run and type(harness).launch is Harness.launch:
        raise UsageError(f"harness {name} defines neither launch() nor run()")
    if program and harness.program is None:
        raise UsageError(f"--harness-program: harness {name} needs no program; leave it out")
    return harness


def make_upstream(spec: str, base_url: str) -> Upstream:
    """`NAME[:ARGUMENT]` -> `rollout.gateway.upstreams.NAME`."""
    name, _, argument = spec.partition(":")
    found = load("rollout.gateway.upstreams", name, Upstream, "model")
    upstream = found.from_spec(argument, base_url)
    check(upstream, Upstream)
    return upstream


def _surface(options: Options, harness: Harness, environment: Environment) -> ToolSurface:
    """The surface asked for, or the first that harness and environment share."""
    shared = [surface for surface in harness.surfaces if surface in environment.surfaces]
    if not options.tools and shared:
        return shared[0]
    if not shared:
        takes, has = ", ".join(harness.surfaces), ", ".join(environment.surfaces)
        raise UsageError(f"--harness {options.harness} takes {takes} tools, the suite has {has}")
    for surface in shared:
        if surface == options.tools:
            return surface
    names = ", ".join(shared)
    raise UsageError(f"--harness {options.harness} takes --tools {names}; not {options.tools}")
