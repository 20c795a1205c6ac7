"""Models x harnesses: pass@k and pass^k with intervals, against a base run, and across harnesses."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from reports.comparability import notes
from reports.intervals import NOTHING, Interval, paired_difference
from reports.load import Run, Runs
from reports.table import Column, Table
from rollout.statistics import Estimate, Metrics, Rates, mean, pass_at_k, pass_hat_k, summarise
from rollout.types import JsonObject, Outcome

__all__ = ["common", "cross_harness", "differences_by_task", "passes_by_task", "transfer"]

RATES = ("pass_hat_k", "pass_at_k", "pass_at_1")


def cross_harness(runs: Runs) -> Table:
    """One row a run: the three figures, what they stand on, and the difference to the base run."""
    frame = pd.DataFrame([_row(runs, run) for run in runs])
    k = runs.k
    names = {"pass_hat_k": f"pass^{k}", "pass_at_k": f"pass@{k}", "pass_at_1": "pass@1"}
    shown = RATES if k > 1 else ("pass_at_1",)
    columns = {"model": Column("model"), "harness": Column("harness"), "tools": Column("tools")}
    columns |= {rate: _rate_column(rate, names[rate], k) for rate in shown}
    first = shown[0]
    columns[f"delta_{first}"] = Column(
        f"{names[first]} - base",
        "share",
        help=f"Difference to {runs.base.label} on the tasks that both ran, in points; the interval is a "
        "paired bootstrap over tasks (Efron and Tibshirani 1993, section 10.3).",
        low=f"delta_{first}_low",
        high=f"delta_{first}_high",
    )
    columns |= _counts()
    columns[f"pessimistic_{first}"] = Column(
        f"pessimistic {names[first]}",
        "share",
        help="With every attempt that has no grade, or was not made, counted as failed.",
        low=f"pessimistic_{first}_low",
        high=f"pessimistic_{first}_high",
    )
    return Table(
        name="cross-harness",
        title="Models in harnesses",
        frame=frame,
        columns=columns,
        about=(
            f"One row a run. Figures are means over tasks with at least {k} graded attempts (pass@1: at "
            "least one), with 95 % intervals over tasks. Attempts without a grade (infrastructure, "
            "judge) count in the pessimistic figure only."
        ),
        notes=notes(runs),
    )


def transfer(runs: Runs) -> Table:
    """Rows: models and what they were trained in. Columns: the harness in which they were tested."""
    harnesses = list(dict.fromkeys(run.harness for run in runs))
    models = list(dict.fromkeys(run.model for run in runs))
    frame = pd.DataFrame([_transfer_row(runs, model, harnesses) for model in models])
    columns = {"model": Column("model"), "trained_in": Column("trained in")}
    for harness in harnesses:
        low, high = f"{harness}_low", f"{harness}_high"
        columns[harness] = Column(f"in {harness}", "share", low=low, high=high)
        columns[f"{harness}_seen"] = Column(
            "seen", "flag", help=f"Whether the model was trained in {harness}."
        )
    columns["seen"] = Column(
        "mean seen", "share", help="Mean over the harnesses it was trained in."
    )
    columns["unseen"] = Column("mean unseen", "share", help="Mean over the other harnesses.")
    return Table(
        name="transfer",
        title="From the harnesses of training to others",
        frame=frame,
        columns=columns,
        about=(
            f"{_name(runs.k)} of each model in each harness. What a model was trained in is told by its "
            "run's manifest (model.trained_in) or by --trained MODEL=harness,...; of a model of which "
            "nothing is told, nothing is seen or unseen."
        ),
        notes=notes(runs),
    )


def passes_by_task(run: Run) -> dict[str, tuple[int, int]]:
    """Task -> graded attempts, and passes among them."""
    found: dict[str, tuple[int, int]] = {}
    for episode in run.episodes:
        if episode.outcome.graded:
            n, c = found.get(episode.task_id, (0, 0))
            found[episode.task_id] = n + 1, c + (episode.outcome is Outcome.PASSED)
    return found


def common(a: Run, b: Run, k: int) -> list[str]:
    """The tasks that both runs graded at least k times, and whose data is the same in both."""
    here, there = passes_by_task(a), passes_by_task(b)
    old, new = a.manifest.tasks, b.manifest.tasks
    return [
        task
        for task in sorted(here.keys() & there.keys())
        if min(here[task][0], there[task][0]) >= k and old.get(task) == new.get(task)
    ]


def differences_by_task(a: Run, b: Run, k: int, rate: str) -> list[float]:
    """b - a of one of the rates, per common task."""
    here, there = passes_by_task(a), passes_by_task(b)
    needed = 1 if rate == "pass_at_1" else k
    return [_of(rate, there[task], k) - _of(rate, here[task], k) for task in common(a, b, needed)]


def _of(rate: str, passes: tuple[int, int], k: int) -> float:
    if rate == "pass_hat_k":
        return pass_hat_k(*passes, k)
    return pass_at_k(*passes, k if rate == "pass_at_k" else 1)


def _row(runs: Runs, run: Run) -> JsonObject:
    metrics = summarise(run.episodes, runs.k)
    row: JsonObject = {
        "run": run.label,
        "model": run.model,
        "harness": run.harness,
        "tools": run.manifest.tools,
        "k": runs.k,
        **_rates(metrics.rates),
    }
    for rate in RATES:
        found = NOTHING
        if run is not runs.base:
            found = paired_difference(differences_by_task(runs.base, run, runs.k, rate))
        row |= _spread(f"delta_{rate}", found)
    row |= _spread("score", metrics.score)
    return row | _attempts(metrics) | _rates(metrics.pessimistic, "pessimistic_")


def _rates(rates: Rates, prefix: str = "") -> JsonObject:
    row: JsonObject = {}
    for rate in RATES:
        row |= _spread(prefix + rate, getattr(rates, rate))
    return row


def _spread(name: str, found: Estimate | Interval | None) -> JsonObject:
    value, low, high = (found.value, found.low, found.high) if found else (math.nan,) * 3
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _attempts(metrics: Metrics) -> JsonObject:
    outcomes = metrics.outcomes
    return {
        "tasks": metrics.tasks,
        "incomplete": len(metrics.incomplete),
        "attempted": metrics.attempted,
        "graded": metrics.graded,
        "errored": outcomes.get("infra_error", 0) + outcomes.get("judge_error", 0),
        "blocked": outcomes.get("blocked", 0),
        "skipped": outcomes.get("skipped", 0),
    }


def _counts() -> dict[str, Column]:
    return {
        "tasks": Column("tasks", "count", help="With an attempt that was not skipped."),
        "attempted": Column(
            "attempted", "count", help="Attempts that ended, skipped ones left out."
        ),
        "graded": Column("graded", "count", help="Attempts that passed or failed."),
        "errored": Column(
            "errored", "count", help="Attempts that ended in infra_error or judge_error."
        ),
    }


def _rate_column(rate: str, label: str, k: int) -> Column:
    texts = {
        "pass_hat_k": f"All {k} attempts pass: C(c, k) / C(n, k), the unbiased estimator of Yao et al. "
        "2024 (tau-bench, section 3).",
        "pass_at_k": f"Any of {k} attempts passes: 1 - C(n-c, k) / C(n, k), the unbiased estimator of "
        "Chen et al. 2021 (section 2.1).",
        "pass_at_1": "An attempt passes: the mean over tasks of the share of attempts that do.",
    }
    return Column(label, "share", help=texts[rate], low=f"{rate}_low", high=f"{rate}_high")


def _name(k: int) -> str:
    return f"pass^{k}" if k > 1 else "pass@1"


def _transfer_row(runs: Runs, model: str, harnesses: Sequence[str]) -> JsonObject:
    own = [run for run in runs if run.model == model]
    trained = runs.trained.get(model) or _told(own)
    row: JsonObject = {"model": model, "trained_in": ", ".join(trained) or "-"}
    means: dict[bool, list[float]] = {True: [], False: []}
    for harness in harnesses:
        tested = [run for run in own if run.harness == harness]
        # Of several runs of one model in one harness, the first one named counts.
        rate = summarise(tested[0].episodes, runs.k).rates.pass_hat_k if tested else None
        row |= _spread(harness, rate)
        row[f"{harness}_seen"] = harness in trained if trained else None
        if rate and trained:
            means[harness in trained].append(rate.value)
    for name, seen in (("seen", True), ("unseen", False)):
        row[name] = mean(means[seen]) if means[seen] else math.nan
    return row


def _told(runs: Sequence[Run]) -> tuple[str, ...]:
    """What the manifests say that a model was trained in."""
    for run in runs:
        told = run.manifest.model.get("trained_in")
        if isinstance(told, list):
            return tuple(map(str, told))
    return ()
