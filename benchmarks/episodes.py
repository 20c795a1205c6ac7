"""Episodes a second: the ReAct harness with the reference policy on the built-in tasks, beside Inspect.

    python benchmarks/episodes.py [--episodes 240] [--concurrency 4]

Ours are whole episodes: a world, about a dozen model calls through the gateway, tool calls, grading, and
the store with its fsyncs. Inspect's are the least that it can do: one call of a scripted model in memory
(mockllm), no tools, no sandbox, an exact-match scorer. Each runs in a process of its own; imports and the
export to a log are not counted for ours, and all of `eval()` after the imports is for Inspect.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from rollout.runner import Runner
from rollout.store import EpisodeStore
from rollout.types import Outcome, Task
from suites.claweval import ClawEval
from suites.command.options import parse
from suites.command.setup import open_setup

INSPECT = """
import sys, tempfile, time, json
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

n, concurrency = int(sys.argv[1]), int(sys.argv[2])
def answer(input, tools, tool_choice, config):
    output = ModelOutput.from_content("mockllm/model", "yes")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output
model = get_model("mockllm/model", custom_outputs=answer)
samples = [Sample(input="?", target="yes") for _ in range(n)]
task = Task(dataset=samples, solver=generate(), scorer=match())
begin, cpu = time.perf_counter(), time.process_time()
[log] = eval(task, model=model, log_dir=tempfile.mkdtemp(), display="none", max_samples=concurrency)
assert log.status == "success", log.error
spent = {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "calls": n}
print(json.dumps(spent))
"""


async def ours(episodes: int, concurrency: int, tools: str) -> dict[str, float]:
    suite = ClawEval()
    options = parse(suite, ["--harness", "react", "--tools", tools, "--sandbox", "local"])
    with tempfile.TemporaryDirectory() as folder:
        with EpisodeStore.create(Path(folder)) as store:
            async with open_setup(suite, options) as setup:
                runner = Runner(setup, store=store, concurrency=concurrency)
                tasks = list(_repeated(suite.tasks(None), episodes))
                begin, cpu = time.perf_counter(), time.process_time()
                async for group in runner.groups(tasks, 1):
                    assert group.episodes[0].outcome is Outcome.PASSED
                seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
            calls = sum(episode.calls for episode in store.episodes())
    return {"seconds": seconds, "cpu": cpu, "calls": calls}


def _repeated(tasks: object, count: int) -> Iterator[Task]:
    """`count` tasks with ids of their own, without those whose faults make the policy wait."""
    quick = [task for task in tasks if task.category != "recovery"]  # type: ignore[attr-defined]
    for index, task in enumerate(islice(cycle(quick), count)):
        yield msgspec.structs.replace(task, id=f"{task.id}-{index}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=240)
    parser.add_argument("--concurrency", type=int, default=4)
    options = parser.parse_args()
    size = (options.episodes, options.concurrency)
    rows = {f"react, {t} tools": asyncio.run(ours(*size, t)) for t in ("native", "mcp")}
    command = [sys.executable, "-c", INSPECT, *map(str, size)]
    inspect = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rows["Inspect, one call each"] = json.loads(inspect.stdout.strip().splitlines()[-1])
    table = Table("", "episodes/s", "CPU ms each", "model calls each", "CPU ms a call")
    for name, row in rows.items():
        per_episode = 1000 * row["cpu"] / options.episodes
        table.add_row(
            name,
            f"{options.episodes / row['seconds']:.1f}",
            f"{per_episode:.1f}",
            f"{row['calls'] / options.episodes:.1f}",
            f"{1000 * row['cpu'] / row['calls']:.1f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
