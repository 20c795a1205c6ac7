"""Charts as data: Plotly figures in plain JSON, drawn by the page with the plotly.js that it carries.

Colours are names of the page's style (`var(--c1)`), so that a figure is redrawn when the theme changes.
Series differ in dash, marker or pattern as well as in colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from reports.figure import Figure
from reports.heat_map import heat_map
from reports.load import Runs
from reports.table import Table
from rollout.statistics import Estimate, estimate, pass_at_k, pass_hat_k
from rollout.types import JsonObject

__all__ = ["figures"]

COLOURS = 6
"""The page's `--c1` to `--c6`: Okabe and Ito's palette, darkened or lightened for contrast."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
PATTERNS = ("", "/", ".", "x", "-", "+")

_PERCENT = {"tickformat": ".0%", "range": [0, 1.02]}
_SPLIT = {
    "model": "model_seconds",
    "tools": "tool_seconds",
    "harness and waiting": "harness_seconds",
    "setup": "setup_seconds",
    "grading": "grading_seconds",
}


def figures(
    runs: Runs, tables: Sequence[Table], places: Mapping[tuple[str, str], int]
) -> dict[str, Figure]:
    """All charts by name. `places` has the page's index of each (run's label, episode's id)."""
    made = [bars(runs), curves(runs), heat_map(runs, places), split(runs)]
    made += [radar(table) for table in tables if table.name == "behaviour"]
    return {figure.name: figure for figure in made}


def colour(n: int) -> str:
    """The n-th series' colour, as the page's style names it."""
    return f"var(--c{n % COLOURS + 1})"


def bars(runs: Runs) -> Figure:
    """pass@1, pass^k and pass@k of each run, with 95 % intervals over tasks."""
    labels = [run.label for run in runs]
    counts = _counts(runs)
    rates = {f"pass@{runs.k}": (pass_at_k, runs.k), "pass@1": (pass_at_k, 1)}
    rates = (
        {**rates, f"pass^{runs.k}": (pass_hat_k, runs.k)}
        if runs.k > 1
        else {"pass@1": rates["pass@1"]}
    )
    data = []
    for n, (name, (rate, k)) in enumerate(reversed(rates.items())):
        values = [_estimate(counts[label], rate, k) for label in labels]
        marker = {"color": colour(n), "symbol": SYMBOLS[n], "size": 11}
        data.append(_points(name, labels, values, marker, offset=(n - 1) * 0.22))
    return Figure(
        name="reliability-bars",
        title="How often it succeeds, and how often every time",
        about=f"pass^{runs.k}: all {runs.k} attempts at a task pass; pass@{runs.k}: any does. With 95 % "
        "intervals over tasks. Whether two runs differ is told by the paired comparison below.",
        data=data,
        layout={
            "xaxis": _PERCENT,
            "yaxis": {
                "tickvals": list(range(len(labels))),
                "ticktext": labels,
                "range": [len(labels) - 0.5, -0.5],
                "showgrid": False,
                "zeroline": False,
            },
        },
        height=130 + 74 * len(labels),
    )


def curves(runs: Runs) -> Figure:
    """pass@k (dashed) and pass^k (solid) over k: what more attempts would give, and what they cost."""
    data: list[JsonObject] = []
    for n, (label, counts) in enumerate(_counts(runs).items()):
        most = min((attempts for attempts, _ in counts), default=0)
        ks = list(range(1, most + 1))
        for name, rate, dash in (("pass@k", pass_at_k, "dash"), ("pass^k", pass_hat_k, "solid")):
            found = [_estimate(counts, rate, k) for k in ks]
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "name": label,
                    "legendgroup": label,
                    "showlegend": name == "pass^k",
                    # Runs that are level would hide each other: each is moved a little.
                    "x": [k + 0.03 * (n - (len(runs) - 1) / 2) for k in ks],
                    "y": [e.value if e else None for e in found],
                    "line": {"color": colour(n), "width": 2.5, "dash": dash},
                    "marker": {"symbol": SYMBOLS[n % len(SYMBOLS)], "size": 8, "color": colour(n)},
                    "text": [f"{label}<br>{name}, k = {k}" for k in ks],
                    "hovertemplate": "%{text}: %{y:.1%}<extra></extra>",
                }
            )
    return Figure(
        name="curves",
        title="Any of k attempts, all of k attempts",
        about="Dashed: pass@k, any of k passes. Solid: pass^k, all k pass. The further the two part, "
        "the more an agent's success is luck. Unbiased estimates from the attempts made.",
        data=data,
        layout={
            "xaxis": {"dtick": 1, "tickprefix": "k = ", "showgrid": False},
            "yaxis": {**_PERCENT, "range": [-0.03, 1.03]},
        },
        height=380 + 24 * len(runs),
    )


def radar(table: Table) -> Figure:
    """Shares in [0, 1] around a circle, a line per run, as in the paper's Figure 5."""
    axes = {
        column.label: name
        for name, column in table.columns.items()
        if column.kind == "share" and table.frame[name].notna().any()
    }
    data: list[JsonObject] = []
    for n, record in enumerate(table.frame.to_dict("records")):
        label, values = str(record["run"]), [_number(record[name]) for name in axes.values()]
        data.append(
            {
                "type": "scatterpolar",
                "name": label,
                "theta": [*axes, *list(axes)[:1]],
                "r": [*values, *values[:1]],
                "line": {"color": colour(n), "dash": DASHES[n % len(DASHES)], "width": 2.5},
                "marker": {"symbol": SYMBOLS[n % len(SYMBOLS)], "size": 7, "color": colour(n)},
                "hovertemplate": f"{label}<br>%{{theta}}: %{{r:.1%}}<extra></extra>",
            }
        )
    axis = {"gridcolor": "var(--line)", "linecolor": "var(--line)"}
    polar = {
        "bgcolor": "rgba(0,0,0,0)",
        "radialaxis": {
            **axis,
            "range": [0, 1],
            "tickformat": ".0%",
            "dtick": 0.25,
            "angle": 90,
            "tickangle": 90,
            "tickfont": {"color": "var(--soft)", "size": 11},
        },
        "angularaxis": {**axis, "direction": "clockwise", "rotation": 90},
    }
    layout = {
        "polar": polar,
        "margin": {"l": 90, "r": 90, "t": 40, "b": 40},
        "legend": {"y": -0.12},
    }
    return Figure(
        name="radar",
        title="Behaviour at a glance",
        about="Shares, 0 % in the middle and 100 % at the rim. The table below defines each of them.",
        data=data,
        layout=layout,
        height=440 + 24 * len(data),
    )


def split(runs: Runs) -> Figure:
    """Mean seconds of an attempt by where they went."""
    means = runs.episodes.groupby("run")[list(_SPLIT.values())].mean()
    labels = [run.label for run in runs if run.label in means.index]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": part,
            "y": labels,
            "x": [_number(means.loc[label, column]) for label in labels],
            "marker": {"color": colour(n), "pattern": _pattern(n)},
            "hovertemplate": f"%{{y}}<br>{part}: %{{x:.2f}} s<extra></extra>",
        }
        for n, (part, column) in enumerate(_SPLIT.items())
    ]
    return Figure(
        name="time-split",
        title="Where the time of an attempt goes",
        about="Mean seconds per attempt. The gateway measures the waits for the model and for tools; "
        "what is left is the harness itself.",
        data=data,
        layout={
            "barmode": "stack",
            "xaxis": {"ticksuffix": " s"},
            "legend": {"traceorder": "normal"},
            "yaxis": {"autorange": "reversed", "showgrid": False},
        },
        height=150 + 44 * len(labels),
    )


def _pattern(n: int) -> JsonObject:
    return {"shape": PATTERNS[n], "fillmode": "overlay", "solidity": 0.12, "size": 9}


def _counts(runs: Runs) -> dict[str, list[tuple[int, int]]]:
    """Label -> (graded attempts, passes) of each task that has a graded attempt."""
    graded = runs.episodes[runs.episodes["graded"].astype(bool)]  # an empty column has no type
    tasks = graded.groupby(["run", "task"])["passed"].agg(["size", "sum"])
    counts: dict[str, list[tuple[int, int]]] = {run.label: [] for run in runs}
    for (label, _), made, passed in zip(tasks.index, tasks["size"], tasks["sum"], strict=True):
        counts[str(label)].append((int(made), int(passed)))
    return counts


def _estimate(counts: Sequence[tuple[int, int]], rate: Any, k: int) -> Estimate | None:
    return estimate([rate(n, c, k) for n, c in counts if n >= k])


def _points(
    name: str,
    labels: Sequence[str],
    values: Sequence[Estimate | None],
    marker: JsonObject,
    offset: float,
) -> JsonObject:
    """A dot per label with its interval, moved a little so that series do not hide each other."""
    shown = [
        (n, label, value)
        for n, (label, value) in enumerate(zip(labels, values, strict=True))
        if value
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [value.value for _, _, value in shown],
        "y": [n + offset for n, _, _ in shown],
        "marker": marker,
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [value.high - value.value for _, _, value in shown],
            "arrayminus": [value.value - value.low for _, _, value in shown],
            "color": marker["color"],
            "thickness": 2.5,
            "width": 0,
        },
        "hovertext": [
            f"{label}<br>{name}: {value.value:.1%} ({value.low:.0%} to {value.high:.0%}), {value.n} tasks"
            for _, label, value in shown
        ],
        "hoverinfo": "text",
    }


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)
