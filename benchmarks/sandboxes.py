"""What a sandbox costs: start it, run `true`, stop it.

    python benchmarks/sandboxes.py [--rounds 20] [local bubblewrap docker]

CPU is that of this process and of its children. Docker's own CPU is in its daemon and not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rollout import plugins
from rollout.sandbox import SandboxProvider, SandboxSpec

SPEC = SandboxSpec(gateway_socket=Path(os.devnull), gateway_port=0)


def cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


async def episode(provider: SandboxProvider) -> None:
    async with provider.open(SPEC) as sandbox:
        result = await sandbox.exec(["true"], env={"PATH": "/usr/bin:/bin"})
    if result.exit_code:
        raise SystemExit(f"{provider.name}: true ended with {result.exit_code}")


async def measure(provider: SandboxProvider, rounds: int) -> tuple[float, float, float]:
    """Median and slowest wall-clock seconds, and mean CPU seconds, of one sandbox."""
    await episode(provider)
    walls = []
    cpu = cpu_seconds()
    for _ in range(rounds):
        started = time.perf_counter()
        await episode(provider)
        walls.append(time.perf_counter() - started)
    return statistics.median(walls), max(walls), (cpu_seconds() - cpu) / rounds


async def main() -> None:
    parser = argparse.ArgumentParser(description="What a sandbox costs: start, `true`, stop.")
    parser.add_argument("names", nargs="*", default=["local", "bubblewrap", "docker"])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    table = Table("sandbox", "median ms", "slowest ms", "CPU ms", title="start, true, stop")
    for name in options.names:
        provider = plugins.load("rollout.sandboxes", name, SandboxProvider)()
        if problem := await provider.check():
            table.add_row(name, problem)
            continue
        median, slowest, cpu = await measure(provider, options.rounds)
        table.add_row(name, *(f"{1000 * seconds:.0f}" for seconds in (median, slowest, cpu)))
    Console().print(table)


if __name__ == "__main__":
    asyncio.run(main())
