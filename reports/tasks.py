"""The tasks behind a run, as long as their data is still what the run had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rollout.errors import RolloutError
from rollout.manifest import Manifest
from rollout.recorded import recorded_suite
from rollout.types import Task

__all__ = ["RunTasks", "tasks_of"]


@dataclass(frozen=True)
class RunTasks:
    """What could be loaded of a run's tasks, and why the rest could not."""

    tasks: Mapping[str, Task] = field(default_factory=dict)
    """Task id -> the task, with the data that the run had."""
    problem: str = ""


def tasks_of(manifest: Manifest) -> RunTasks:
    """Load the run's suite with the options of its manifest; keep what has the same fingerprint."""
    try:
        suite, options = recorded_suite(manifest)
        found = {task.id: task for task in suite.tasks(options.data)}
    except (RolloutError, OSError, SystemExit) as error:
        return RunTasks(problem=f"its tasks can't be loaded: {error}")
    wanted = manifest.tasks
    kept = {i: task for i, task in found.items() if wanted.get(i) == task.fingerprint}
    changed = len(wanted) - len(kept)
    problem = f"{changed} of {len(wanted)} tasks are no longer as they were" if changed else ""
    return RunTasks(kept, problem)
