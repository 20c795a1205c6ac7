"""One task of a folder that holds no other."""

from __future__ import annotations

from pathlib import Path

from environments.claw.loader import Resources, load_tasks
from environments.claw.task import ClawTask

__all__ = ["load_task"]


def load_task(
    folder: Path, resources: Resources | None = None, *, patched: bool = False
) -> ClawTask:
    """The task in one folder. Raises UsageError."""
    [task] = load_tasks(folder, resources or Resources(), patched=patched)
    return task
