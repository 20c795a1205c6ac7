"""ClawEval: everyday work against mock services (mail, calendar, CRM, finance ...).

Without `--data` it runs the built-in tasks below `tasks/`; with it, a folder of tasks in the
claw-eval schema (`DIR/tasks/*/task.yaml` or `DIR/*/task.yaml`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from environments.claw import Claw
from environments.claw.task import load_tasks
from rollout.environment import Environment
from rollout.suite import Suite
from rollout.types import Task

__all__ = ["ClawEval"]

BUILT_IN = Path(__file__).parent / "tasks"


class ClawEval(Suite):
    """Office tasks in English and Chinese, graded from the world that the agent leaves."""

    name = "claweval"
    title = "ClawEval: everyday work against mock services (mail, calendar, CRM, finance ...)"

    def environment(self) -> Environment:
        return Claw()

    def tasks(self, data: Path | None) -> Sequence[Task]:
        folder = data or BUILT_IN
        nested = folder / "tasks"
        return load_tasks(nested if nested.is_dir() else folder)
