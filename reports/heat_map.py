"""The map of attempts: a row a task, a column an attempt, and a click opens the episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reports.figure import Figure
from reports.load import Run, Runs
from rollout.types import JsonObject

__all__ = ["heat_map"]

WORST_TASKS = 60
"""No more tasks are shown than people can look at: the least reliable ones."""

PASSED, OTHER, FAILED = 2, 1, 0


class Cell(NamedTuple):
    """An attempt that was made."""

    episode: str
    outcome: str

    @property
    def value(self) -> int:
        """Its place on the colour scale."""
        return {"passed": PASSED, "failed": FAILED}.get(self.outcome, OTHER)

    @property
    def mark(self) -> str:
        """What stands in it: colour alone would not do."""
        return {"passed": "✓", "failed": "✗"}.get(self.outcome, "–")


Column = tuple[str, int]
"""A run's label, and the number of an attempt."""


def heat_map(runs: Runs, places: Mapping[tuple[str, str], int]) -> Figure:
    """Tasks x attempts, the least reliable tasks first. `places`: see `reports.charts.figures`."""
    totals = runs.episodes.groupby("task")["passed"].mean().sort_values(kind="stable")
    tasks = list(totals.index[:WORST_TASKS])
    columns = [(run.label, attempt) for run in runs for attempt in range(run.manifest.attempts)]
    left_out = len(totals) - len(tasks)
    return Figure(
        name="heat-map",
        title="Each attempt at each task",
        about="A tick passed, a cross failed, a dash has no grade. The least reliable tasks come first"
        + (f" ({left_out} more reliable tasks are left out)" if left_out else "")
        + "; columns are attempts, run by run. Click a cell to open the episode.",
        data=[_drawn(tasks, columns, _cells(runs, tasks, columns), places)],
        layout=_layout(_starts(runs)),
        height=130 + 22 * len(tasks),
        width=200 + 36 * len(columns) + 40 * len(runs),
    )


def _cells(runs: Runs, tasks: Sequence[str], columns: Sequence[Column]) -> list[list[Cell | None]]:
    """The attempts by task and column; None for one that was not made."""
    frame = runs.episodes
    names = [frame[name] for name in ("run", "attempt", "task", "episode", "outcome")]
    found = {
        (label, attempt, task): Cell(episode, outcome)
        for label, attempt, task, episode, outcome in zip(*names, strict=True)
    }
    return [[found.get((*column, task)) for column in columns] for task in tasks]


def _drawn(
    tasks: Sequence[str],
    columns: Sequence[Column],
    cells: Sequence[Sequence[Cell | None]],
    places: Mapping[tuple[str, str], int],
) -> JsonObject:
    rows = [list(zip(columns, row, strict=True)) for row in cells]
    return {
        "type": "heatmap",
        "z": [[cell and cell.value for cell in row] for row in cells],
        "x": list(range(len(columns))),
        "y": tasks,
        "text": [[cell.mark if cell else "" for cell in row] for row in cells],
        "texttemplate": "%{text}",
        "textfont": {"color": "var(--heat-text)", "size": 13},
        "hovertext": [
            [_hover(column, task, cell) for column, cell in row]
            for task, row in zip(tasks, rows, strict=True)
        ],
        "hoverinfo": "text",
        "customdata": [
            [places.get((label, cell.episode)) if cell else None for (label, _), cell in row]
            for row in rows
        ],
        "zmin": FAILED,
        "zmax": PASSED,
        "colorscale": _steps("var(--heat-bad)", "var(--heat-other)", "var(--heat-good)"),
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }


def _layout(starts: Sequence[tuple[int, Run]]) -> JsonObject:
    return {
        "xaxis": {
            "side": "top",
            "tickvals": [n + (run.manifest.attempts - 1) / 2 for n, run in starts],
            "ticktext": [run.label.replace(" · ", "<br>") for _, run in starts],
            "tickangle": 0,
            "showgrid": False,
            "zeroline": False,
        },
        "yaxis": {"autorange": "reversed", "showgrid": False, "type": "category"},
        "shapes": [_gap(n - 0.5) for n, _ in starts[1:]],
    }


def _gap(x: float) -> JsonObject:
    """Between two runs."""
    line = {"color": "var(--page)", "width": 8}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _hover(column: Column, task: str, cell: Cell | None) -> str:
    label, attempt = column
    return f"{task}<br>{label}, attempt {attempt + 1}: {cell.outcome if cell else 'not made'}"


def _steps(*colours: str) -> list[list[Any]]:
    """A colour scale with steps in place of shades."""
    width = 1 / len(colours)
    return [[edge * width, shade] for n, shade in enumerate(colours) for edge in (n, n + 1)]


def _starts(runs: Runs) -> list[tuple[int, Run]]:
    """Each run with its first column."""
    found, start = [], 0
    for run in runs:
        found.append((start, run))
        start += run.manifest.attempts
    return found
