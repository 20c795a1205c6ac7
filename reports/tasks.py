"""The tasks behind a run, as long as their data is still what the run had."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rollout.errors import RolloutError
from rollout.manifest import Manifest
from rollout.plugins import available, load
from rollout.suite import Suite
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
    name = str(manifest.suite.get("name", ""))
    # A manifest may come from anywhere: only this project's own suites are imported for it.
    if name not in available("suites"):
        return RunTasks(problem=f"there is no suite {name!r} here")
    try:
        found = {task.id: task for task in _load(name, manifest)}
    except (RolloutError, OSError, SystemExit) as error:
        return RunTasks(problem=f"suite {name} can't be loaded: {error}")
    wanted = manifest.tasks
    kept = {i: task for i, task in found.items() if wanted.get(i) == task.fingerprint}
    changed = len(wanted) - len(kept)
    problem = f"{changed} of {len(wanted)} tasks are no longer as they were" if changed else ""
    return RunTasks(kept, problem)


def _load(name: str, manifest: Manifest) -> list[Task]:
    suite = load("suites", name, Suite)()
    parser = argparse.ArgumentParser(exit_on_error=False)
    own = parser.add_argument_group()
    suite.add_arguments(own)
    options = {action.dest for action in own._group_actions}
    data = manifest.suite.get("data", "built-in")
    path = None if data == "built-in" else Path(str(data))
    parser.set_defaults(**{key: v for key, v in manifest.suite.items() if key in options})
    suite.configure(parser.parse_args([], argparse.Namespace(base_url="", data=path)))
    return list(suite.tasks(path))
