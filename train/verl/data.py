"""A suite's tasks as a dataset of verl: `data.custom_cls`, with suites in place of files.

data.custom_cls.path=pkg://train.verl.data  data.custom_cls.name=SuiteTasks
data.train_files="claweval --tasks tag:scheduling"

A suite's line may say `--harness MIX`: then each task has a row for every harness of the mix, told apart
by `data_source`. Without it, a worker draws the harness from `anyharness.harness` each time that a row
is attempted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import Dataset

from rollout.errors import UsageError
from rollout.options import Parser
from rollout.types import Task
from suites.command.options import select
from train.mix import parse_mix
from train.runs import Source, words

__all__ = ["SuiteTasks"]


class SuiteTasks(Dataset[dict[str, Any]]):  # type: ignore[misc]
    """One row a task. verl gives each prompt its `uid`."""

    def __init__(
        self,
        data_files: str | Sequence[str],
        tokenizer: Any,
        config: Any,
        processor: Any = None,
        max_samples: int = -1,
    ) -> None:
        """`data_files` are suites, as on their command line. Raises UsageError for an unknown one."""
        specs = [data_files] if isinstance(data_files, str) else list(data_files)
        found = [one for spec in specs for one in _tasks(spec)]
        self._rows = [_row(*one, index) for index, one in enumerate(found)]
        if max_samples > 0:
            self._rows = self._rows[:max_samples]
        if not self._rows:
            raise UsageError(f"data: {', '.join(specs)}: no task that can be run")

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return dict(self._rows[index])


def _tasks(spec: str) -> Iterator[tuple[str, str, str, Task]]:
    """Suite's line, harness (empty: any), name of the source, task."""
    parser = Parser(add_help=False)
    parser.add_argument("--harness", default="")
    told, rest = parser.parse_known_args(words(spec))
    line = shlex.join(rest)
    source = Source.parse(line)
    tasks = select(source.suite.tasks(source.options.data), source.options.tasks)
    harnesses = [one.name for one in parse_mix(told.harness)] if told.harness else [""]
    for harness in harnesses:
        name = "/".join(filter(None, (source.suite.name, harness)))
        for task in tasks:
            if not task.skip:
                yield line, harness, name, task


def _row(line: str, harness: str, source: str, task: Task, index: int) -> dict[str, Any]:
    return {
        "suite": line,
        "harness": harness,
        "task": task.id,
        "index": index,
        "agent_name": "anyharness",
        "data_source": source,
        "raw_prompt": [{"role": "user", "content": task.prompt}],
        "reward_model": {"style": "environment", "ground_truth": ""},
        "extra_info": {"index": index, "category": task.category},
        "dummy_tensor": torch.tensor([0], dtype=torch.uint8),  # verl's batches need one
    }
