"""A suite's tasks as a dataset of verl: `data.custom_cls`, with suites in place of files.

data.custom_cls.path=pkg://train.verl_data  data.custom_cls.name=SuiteTasks
data.train_files="claweval --tasks tag:scheduling"
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import Dataset

from rollout.errors import UsageError
from rollout.types import Task
from suites.options import select
from train.runs import Source

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
        tasks = [(spec, suite, task) for spec in specs for suite, task in _tasks(spec)]
        self._rows = [_row(*one, index) for index, one in enumerate(tasks)]
        if max_samples > 0:
            self._rows = self._rows[:max_samples]
        if not self._rows:
            raise UsageError(f"data: {', '.join(specs)}: no task that can be run")

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return dict(self._rows[index])


def _tasks(spec: str) -> Iterator[tuple[str, Task]]:
    source = Source.parse(spec)
    for task in select(source.suite.tasks(source.options.data), source.options.tasks):
        if not task.skip:
            yield source.suite.name, task


def _row(spec: str, suite: str, task: Task, index: int) -> dict[str, Any]:
    return {
        "suite": spec,
        "task": task.id,
        "index": index,
        "agent_name": "anyharness",
        "data_source": suite,
        "raw_prompt": [{"role": "user", "content": task.prompt}],
        "reward_model": {"style": "environment", "ground_truth": ""},
        "extra_info": {"index": index, "category": task.category},
        "dummy_tensor": torch.tensor([0], dtype=torch.uint8),  # verl's batches need one
    }
