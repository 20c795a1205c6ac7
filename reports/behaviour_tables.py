"""The measures of behaviour as tables: one row a run to compare, one row a measure to understand."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from reports.behaviour import Measure
from reports.comparability import notes
from reports.load import Runs
from reports.measured import Measured
from reports.table import Column, Table
from rollout.types import JsonObject

__all__ = ["behaviour", "effort", "measures", "tool_use"]

ABOUT = "Means over graded attempts, per task first, with 95 % intervals over tasks."


def behaviour(runs: Runs, found: Measured) -> Table:
    """One row a run: the measures that are shares."""
    shares = [measure for measure in found.measures if measure.share]
    return _wide(runs, found, shares, "behaviour", "What the agents do")


def effort(runs: Runs, found: Measured) -> Table:
    """One row a run: the measures that are numbers."""
    numbers = [measure for measure in found.measures if not measure.share]
    return _wide(runs, found, numbers, "effort", "What an attempt takes")


def measures(runs: Runs, found: Measured) -> Table:
    """One row a measure and run: value, interval, definition and an example; for charts as well."""
    rows = []
    for measure in found.measures:
        for run in runs:
            value = found.value(run.label, measure)
            rows.append(
                {
                    "measure": measure.name,
                    "label": measure.label,
                    "kind": measure.kind,
                    "better": measure.better,
                    "run": run.label,
                    "value": value.value,
                    "low": value.low,
                    "high": value.high,
                    "tasks": value.n,
                    "example": found.example(run.label, measure),
                    "definition": measure.definition,
                }
            )
    return Table(
        name="measures",
        title="Measures of behaviour, and what they mean",
        frame=pd.DataFrame(rows),
        columns={
            "label": Column("measure"),
            "run": Column("run"),
            "value": Column("value", "number", "", "low", "high"),
            "tasks": Column("tasks", "count", "Tasks with a value."),
            "example": Column("example", help="The attempt with the highest or the lowest value."),
            "definition": Column("definition"),
        },
        about=f"{ABOUT} Measures that compare with the reference solution need the run's tasks.",
        notes=(*found.problems, *notes(runs)),
    )


def tool_use(runs: Runs, found: Measured) -> Table:
    """One row a run and function."""
    return Table(
        name="tool-use",
        title="Which tools the model calls",
        frame=found.functions,
        columns={
            "run": Column("run"),
            "tool": Column("tool"),
            "kind": Column("kind", help="A task's tool, a generic shell, or the harness's own."),
            "calls": Column("calls", "count"),
            "share": Column("share", "share", "Of the run's function calls."),
            "share_passed": Column("in passed attempts", "share", "Of those in passed attempts."),
        },
        about=(
            "Functions that the model's replies call, in graded attempts. A task's tool that is used "
            "through a shell command counts as the shell."
        ),
        notes=notes(runs),
    )


def _wide(runs: Runs, found: Measured, chosen: Sequence[Measure], name: str, title: str) -> Table:
    rows = []
    for run in runs:
        row: JsonObject = {"run": run.label, "attempts": len(found.of(run.label))}
        for measure in chosen:
            value = found.value(run.label, measure)
            row |= {
                measure.name: value.value,
                f"{measure.name}_low": value.low,
                f"{measure.name}_high": value.high,
            }
        rows.append(row)
    columns = {"run": Column("run"), "attempts": Column("attempts", "count")}
    for m in chosen:
        columns[m.name] = Column(m.label, m.kind, m.definition, f"{m.name}_low", f"{m.name}_high")
    return Table(
        name=name,
        title=title,
        frame=pd.DataFrame(rows),
        columns=columns,
        about=ABOUT,
        notes=(*found.problems, *notes(runs)),
    )
