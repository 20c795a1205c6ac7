"""Office drills: thousands of short tasks on the Claw services, for teaching small models.

Two to three tool calls each: mail the right one of two namesakes, order a product, move a meeting, file
an expense. `train` and `held-out` share no names and no numbers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rollout.environment import Environment
from rollout.errors import UsageError
from rollout.options import positive
from rollout.suite import Suite
from rollout.types import JsonObject, Task
from suites.office_drills.drills import FAMILIES, drill
from suites.office_drills.grading import Drills
from suites.office_drills.office import SPLITS

__all__ = ["OfficeDrills"]


class OfficeDrills(Suite):
    """A generated family of tasks: number n of a split is the same task each time."""

    name = "office_drills"
    title = "Office drills: thousands of short tasks on the Claw services"

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        self.add_arguments(parser.add_argument_group())
        self._options = parser.parse_args([])

    def add_arguments(self, parser: argparse._ArgumentGroup) -> None:
        parser.add_argument(
            "--split", choices=SPLITS, default="held-out", help="names and numbers (held-out)"
        )
        parser.add_argument(
            "--count", type=positive(int), default=40, metavar="N", help="how many tasks (40)"
        )
        parser.add_argument(
            "--first", type=int, default=0, metavar="N", help="number of the first one (0)"
        )
        parser.add_argument(
            "--families",
            default=",".join(FAMILIES),
            metavar="NAMES",
            help=f"kinds of tasks, in turn (default: {','.join(FAMILIES)})",
        )

    def configure(self, arguments: argparse.Namespace) -> None:
        unknown = set(arguments.families.split(",")) - FAMILIES.keys()
        if unknown:
            raise UsageError(
                f"--families {arguments.families}: no {', '.join(sorted(unknown))};"
                f" known: {', '.join(FAMILIES)}"
            )
        self._options = arguments

    def environment(self) -> Environment:
        return Drills()

    def tasks(self, data: Path | None) -> Sequence[Task]:
        if data is not None:
            raise UsageError(
                "--data: office_drills generates its tasks; choose with --split, --count"
            )
        chosen = self._options
        families = chosen.families.split(",")
        return [
            drill(chosen.split, families[number % len(families)], number)
            for number in range(chosen.first, chosen.first + chosen.count)
        ]

    def fingerprint(self, data: Path | None) -> JsonObject:
        chosen = self._options
        return {
            "data": "built-in",
            "split": chosen.split,
            "first": chosen.first,
            "count": chosen.count,
            "families": chosen.families,
        }
