"""What a harness costs: an office task with the reference policy, per harness and tool surface.

    python benchmarks/harnesses.py [--rounds 3] [--task B01] [codex claude_code:slim ...]

Start-up is from the command's start to its first model call. Memory is that of the largest process. CPU
is of the program and all that it started, one episode; a harness in process has neither. Times are
medians. Each row is measured in a process of its own, in the local sandbox: the system counts for it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from rollout.episode import Setup, run_episode
from rollout.errors import UsageError
from rollout.gateway.server import Gateway
from rollout.gateway.upstreams.reference import Reference
from rollout.harness import Harness
from rollout.plugins import available
from rollout.sandboxes.local import Local
from rollout.types import Task, ToolSurface
from suites.claweval import ClawEval
from suites.command.options import select
from suites.command.setup import make_harness


@dataclass(frozen=True)
class Cost:
    """Of one episode: seconds, bytes of the first request, MiB."""

    startup: float
    wall: float
    cpu: float
    memory: float
    request: int
    calls: int


async def episode(setup: Setup, task: Task, number: int) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended, trace = await run_episode(setup, task, number)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    in_process = setup.harness.program is None
    if not (ended.grade and ended.grade.passed):
        raise SystemExit(f"{ended.outcome}: {ended.reason}")
    return Cost(
        startup=trace.calls[0].started - ended.started - ended.timing.setup,
        wall=ended.timing.total,
        cpu=0.0 if in_process else _seconds(after) - _seconds(before),
        memory=0.0 if in_process else after.ru_maxrss / 1024,
        request=len(trace.calls[0].request),
        calls=len(trace.calls),
    )


async def measure(harness: Harness, surface: ToolSurface, task: Task, rounds: int) -> Cost:
    """The medians of several episodes, one after the other."""
    await harness.prepare()
    async with Gateway(Reference()) as gateway:
        setup = Setup(ClawEval().environment(), harness, gateway, Local(), surface)
        costs = [await episode(setup, task, number) for number in range(rounds)]
    return Cost(*(statistics.median(values) for values in zip(*map(_values, costs), strict=True)))


def _seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def _values(cost: Cost) -> tuple[float, ...]:
    return tuple(vars(cost).values())


def row(name: str, surface: str, options: argparse.Namespace) -> list[str]:
    """Measured in a process of its own."""
    argv = (sys.executable, __file__, "--surface", surface, "--rounds", str(options.rounds))
    done = subprocess.run(
        (*argv, "--task", options.task, name), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return [name, surface, f"failed: {done.stderr.strip().splitlines()[-1]}"]
    cost = Cost(**json.loads(done.stdout))
    return [
        name,
        surface,
        f"{cost.startup:.2f}",
        f"{cost.wall:.2f}",
        f"{cost.cpu:.2f}" if cost.cpu else "-",
        f"{cost.memory:.0f}" if cost.memory else "-",
        f"{cost.request / 1000:.1f}",
        f"{cost.calls:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=available("harness_wrappers"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--task", default="B01")
    parser.add_argument("--surface", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.surface:
        (task,) = select(ClawEval().tasks(None), options.task)
        (name,) = options.names
        cost = asyncio.run(measure(make_harness(name), options.surface, task, options.rounds))
        print(json.dumps(vars(cost)))
        return
    names = ("start-up s", "wall s", "CPU s", "MiB", "request kB", "calls")
    table = Table("harness", "tools", *names, box=None)
    for name in options.names:
        try:
            harness = make_harness(name)
            asyncio.run(harness.prepare())
        except UsageError as error:
            print(error, file=sys.stderr)
            continue
        for surface in harness.surfaces:
            table.add_row(*row(name, surface, options))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
