"""What it costs to open a world of six services, and what claw-eval's own way costs.

    python benchmarks/claw_world.py
    python benchmarks/claw_world.py --claw-eval ~/claw-eval --python ~/claw-eval/.venv/bin/python

The second form starts the original servers as claw-eval's ServiceManager does: one process each, one
after the other, asked for their health every 0.3 s; and once more as `--services original` does: side by
side, and reset for the attempts after the first. `--python` needs fastapi and uvicorn.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from environments.claw import Claw
from environments.claw.servers import ServerPool
from environments.claw.task import ClawTask, ServiceSpec
from rollout.types import JsonObject

ROWS = 30
"""Objects in each fixture; claw-eval's own have 5 to 30."""

SAMPLES: dict[str, tuple[str, JsonObject]] = {
    "gmail": (
        "inbox.json",
        {
            "message_id": "m",
            "from": "a@example.com",
            "subject": "Weekly report",
            "date": "2026-03-01T09:00:00Z",
            "is_read": False,
            "labels": ["inbox", "work"],
            "body": "Please find the figures below. " * 20,
        },
    ),
    "calendar": (
        "events.json",
        {
            "event_id": "e",
            "title": "Review",
            "start_time": "2026-03-02T09:00:00Z",
            "end_time": "2026-03-02T10:00:00Z",
            "attendees": ["a@example.com", "b@example.com"],
        },
    ),
    "todo": ("tasks.json", {"task_id": "t", "title": "Call", "status": "pending", "tags": ["x"]}),
    "contacts": (
        "contacts.json",
        {"contact_id": "c", "name": "Ann", "department": "Sales", "phone": "1"},
    ),
    "kb": (
        "articles.json",
        {
            "article_id": "a",
            "title": "Onboarding",
            "category": "hr",
            "tags": ["new"],
            "last_updated": "2026-01-01",
            "views": 3,
            "content": "First, order a laptop. " * 40,
        },
    ),
    "inventory": (
        "products.json",
        {"product_id": "p", "name": "Laptop", "category": "it", "stock": 4, "price": 900.0},
    ),
}


def make_task(folder: Path) -> ClawTask:
    """A task with six services, and its fixtures below `folder`."""
    specs = []
    for kind, (name, row) in SAMPLES.items():
        path = folder / kind / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([row] * ROWS))
        specs.append(ServiceSpec(name=kind, kind=kind, env={f"{kind.upper()}_FIXTURES": str(path)}))
    return ClawTask(id="six", prompt="", folder=str(folder), services=tuple(specs))


async def open_worlds(
    environment: Claw, task: ClawTask, worlds: int, clock: Callable[[], float]
) -> list[float]:
    """Seconds by this clock that each of so many worlds took to open."""
    seconds = []
    try:
        for seed in range(worlds):
            start = clock()
            async with environment.open(task, seed):
                seconds.append(clock() - start)
    finally:
        await environment.close()
    return seconds


def start_originals(task: ClawTask, checkout: Path, python: str) -> tuple[float, float]:
    """Wall-clock and CPU seconds of starting the original servers, and stopping them again."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    processes = []
    try:
        for spec in task.services:
            port = _free_port()
            command = [python, f"mock_services/{spec.kind}/server.py"]
            env = {**os.environ, **spec.env, "PORT": str(port)}
            quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            processes.append(subprocess.Popen(command, cwd=checkout, env=env, **quiet))
            _wait_until_ready(processes[-1], f"http://127.0.0.1:{port}/{spec.kind}/audit")
        wall = time.perf_counter() - started
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], url: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while process.poll() is None:
        try:
            opener.open(url, timeout=2).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
        else:
            return
    sys.exit(f"{process.args!r} ended with {process.returncode}: is fastapi installed for it?")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--worlds", type=int, default=1000, help="how many to open")
    parser.add_argument("--claw-eval", type=Path, help="a checkout of claw-eval to compare with")
    parser.add_argument("--python", default=sys.executable, help="the Python for its servers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        task = make_task(Path(folder))
        ours = measure_ours(task, options.worlds)
        if options.claw_eval:
            measure_originals(task, options.claw_eval.absolute(), options.python, ours)


def measure_ours(task: ClawTask, worlds: int) -> float:
    """Median wall-clock seconds."""
    cpu = asyncio.run(open_worlds(Claw(), task, worlds, time.process_time))
    wall = median(asyncio.run(open_worlds(Claw(), task, worlds, time.perf_counter)))
    print(f"open a world of six services, {ROWS} objects each, {worlds} times:")
    print(f"  first     {1000 * cpu[0]:10.2f} ms CPU (reads the fixtures)")
    print(f"  median    {1000 * median(cpu):10.2f} ms CPU, {1000 * wall:.2f} ms wall clock")
    print(f"  slowest   {1000 * max(cpu[1:]):10.2f} ms CPU")
    return wall


def measure_originals(task: ClawTask, checkout: Path, python: str, ours: float) -> None:
    wall, cpu = start_originals(task, checkout, python)
    print("claw-eval's six servers, started one after the other, as claw-eval does:")
    print(f"  ready in  {wall:10.2f} s wall clock, {wall / ours:,.0f} times as long")
    print(f"  CPU       {cpu:10.2f} s")
    environment = Claw(ServerPool(checkout, python, {}))
    first, *later = asyncio.run(open_worlds(environment, task, 20, time.perf_counter))
    print("claw-eval's six servers, by --services original:")
    print(f"  first     {first:10.2f} s wall clock, {first / ours:,.0f} times as long")
    print(f"  later     {median(later):10.3f} s (reset), {median(later) / ours:,.0f} times as long")


if __name__ == "__main__":
    main()
