"""A suite that is found by its name, `support.toy_suite`: notes to save."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from support.toys import Notes, note_task

from rollout.environment import Environment
from rollout.suite import Suite
from rollout.types import Task

TASKS = ("bread", "milk", "pens", "soap")


class ToySuite(Suite):
    """Four notes, and one that a judge grades."""

    name, title = "support.toy_suite", "Toy: save a note"

    def add_arguments(self, parser: argparse._ArgumentGroup) -> None:
        parser.add_argument("--protocol", default="rubric:k=2")

    def environment(self) -> Environment:
        return Notes()

    def tasks(self, data: Path | None) -> Sequence[Task]:
        return [*(note_task(name) for name in TASKS), note_task("taste", judged=True)]
