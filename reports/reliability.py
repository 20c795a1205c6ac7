"""How reliable: pass@k and pass^k over k, task by task, outcomes by cause, and two runs compared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from reports.comparability import notes, unlike
from reports.cross_harness import common, differences_by_task, passes_by_task
from reports.intervals import Interval, mcnemar, more_tasks, paired_difference
from reports.load import Run, Runs
from reports.table import Column, Table
from rollout.statistics import summarise
from rollout.types import JsonObject

__all__ = ["Pair", "compare", "curves", "outcomes", "paired", "pairs", "tasks"]

ALL_PAIRS = 6
"""Up to so many runs each is compared with each; of more, each with the base run."""


@dataclass(frozen=True)
class Pair:
    """Two runs compared on the tasks that both graded at least k times."""

    a: Run
    b: Run
    k: int
    tasks: int
    hat: Interval
    """pass^k of b minus that of a."""
    mean: Interval
    """pass@1 of b minus that of a."""
    only_a: int
    """Tasks of which all attempts passed in a and not in b."""
    only_b: int
    p: float
    """Exact McNemar over tasks: all attempts passed, or not."""
    p_attempts: float
    """Exact McNemar over attempts of the same task and number."""
    needed: float
    """How many more tasks would settle the difference in pass^k."""

    @property
    def settled(self) -> bool:
        """Whether test and interval agree that the runs differ."""
        return self.p < 0.05 and self.hat.settled

    @property
    def comparable(self) -> bool:
        """Whether nothing else differs that may be the reason."""
        return not self.differing

    @property
    def differing(self) -> list[str]:
        """The fields that differ and may be the reason. Of the tasks only common ones are compared."""
        serious = [mark.field for mark in unlike(self.a, self.b) if not mark.minor]
        return [field for field in serious if not field.startswith("tasks")]


def curves(runs: Runs) -> Table:
    """pass@k and pass^k for each k up to the number of attempts."""
    rows = [row for run in runs for row in _curve(run)]
    return Table(
        name="pass-at-k",
        title="pass@k and pass^k over k",
        frame=pd.DataFrame(rows, columns=["run", "k", *_spread("hat"), *_spread("at"), "n"]),
        columns={
            "run": Column("run"),
            "k": Column("k", "count"),
            "hat": Column(
                "pass^k",
                "share",
                "All of k attempts pass: C(c, k) / C(n, k) (Yao et al. 2024, section 3).",
                "hat_low",
                "hat_high",
            ),
            "at": Column(
                "pass@k",
                "share",
                "Any of k passes: 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, section 2.1).",
                "at_low",
                "at_high",
            ),
            "n": Column("tasks", "count", "Tasks with at least k graded attempts."),
        },
        about=(
            "How fast reliability falls, and luck rises, with the number of attempts: a policy that "
            "passes each attempt with probability p has pass^k = p^k. Means over tasks, 95 % intervals."
        ),
        notes=notes(runs),
    )


def tasks(runs: Runs) -> Table:
    """One row a task, one column a run: the share of graded attempts that passed."""
    passes = {run.label: passes_by_task(run) for run in runs}
    names = sorted({episode.task_id for run in runs for episode in run.episodes})
    rows = []
    for name in names:
        row: JsonObject = {"task": name}
        for label, found in passes.items():
            n, c = found.get(name, (0, 0))
            row |= {label: c / n if n else math.nan, f"{label} graded": n}
        shares = [row[label] for label in passes if not math.isnan(row[label])]
        row["spread"] = max(shares) - min(shares) if shares else math.nan
        rows.append(row)
    columns = {"task": Column("task")}
    columns |= {label: Column(label, "share") for label in passes}
    columns["spread"] = Column("spread", "share", "The largest difference between two runs.")
    graded = [f"{label} graded" for label in passes]
    frame = pd.DataFrame(rows, columns=["task", *passes, "spread", *graded])
    return Table(
        name="tasks",
        title="Task by task",
        frame=frame.sort_values(["spread", "task"], ascending=[False, True], ignore_index=True),
        columns=columns,
        about="The share of graded attempts that passed; tasks on which the runs differ most come first.",
        notes=notes(runs),
    )


def outcomes(runs: Runs) -> Table:
    """How attempts ended, by outcome and cause, with an example."""
    rows = []
    for run in runs:
        found = runs.episodes[runs.episodes["run"] == run.label]
        for key, group in found.groupby(["outcome", "cause"], sort=True):
            outcome, cause = key
            first = group.iloc[0]
            share = len(group) / len(found)
            example = (first["episode"], first["reason"])
            rows.append((run.label, outcome, cause, len(group), share, *example))
    frame = pd.DataFrame(
        rows, columns=["run", "outcome", "cause", "attempts", "share", "example", "reason"]
    )
    return Table(
        name="outcomes",
        title="How attempts ended",
        frame=frame,
        columns={
            "run": Column("run"),
            "outcome": Column("outcome"),
            "cause": Column(
                "cause", help="The boundary that failed, or `policy` for a limit that was reached."
            ),
            "attempts": Column("attempts", "count"),
            "share": Column("share", "share", "Of the run's attempts."),
            "example": Column("example"),
            "reason": Column("its reason"),
        },
        about=(
            "The last try of each attempt. passed and failed are graded; infra_error is run again and "
            "never counts as a failure but in the pessimistic figures."
        ),
        notes=notes(runs),
    )


def paired(runs: Runs) -> Table:
    """Two runs at a time, on the tasks that both ran."""
    k = runs.k
    name = f"pass^{k}" if k > 1 else "pass@1"
    rows = [_pair_row(pair) for pair in pairs(runs)]
    return Table(
        name="paired",
        title="Two runs on the same tasks",
        frame=pd.DataFrame(rows, columns=_PAIR),
        columns={
            "a": Column("a"),
            "b": Column("b"),
            "comparable": Column(
                "comparable", "flag", "Whether nothing but harness and model differs; see there."
            ),
            "tasks": Column(
                "tasks", "count", f"Graded at least {k} times in both, with the same data."
            ),
            "hat": Column(
                f"{name}: b - a",
                "share",
                "Paired percentile bootstrap over tasks (Efron and Tibshirani 1993, section 10.3).",
                "hat_low",
                "hat_high",
            ),
            "only_a": Column("only a", "count", f"Tasks with all {k} attempts passed in a alone."),
            "only_b": Column("only b", "count", f"Tasks with all {k} attempts passed in b alone."),
            "p": Column(
                "p (tasks)",
                "number",
                "Exact McNemar test over tasks, two-sided (McNemar 1947; Fagerland et al. 2013).",
            ),
            "mean": Column("pass@1: b - a", "share", "", "mean_low", "mean_high"),
            "p_attempts": Column(
                "p (attempts)",
                "number",
                "The same over attempts of the same number. Attempts at one task are not independent, "
                "so it is too sure of itself: the test over tasks counts.",
            ),
            "settled": Column("settled", "flag", "p (tasks) < 0.05 and an interval beside 0."),
            "needed": Column(
                "more tasks",
                "count",
                "How many more tasks of this kind would settle a difference in pass^k of this size, "
                "with a power of 80 % (Connor 1987). Infinite without a difference.",
            ),
        },
        about=(
            "Both runs attempted the same tasks, so tasks that are hard for both cancel out. With "
            f"{len(rows)} comparisons, one in twenty looks settled by chance."
            if len(rows) > 1
            else "Both runs attempted the same tasks, so tasks that are hard for both cancel out."
        ),
        notes=notes(runs),
    )


def pairs(runs: Runs) -> Iterator[Pair]:
    """Each run with each, or with the base run where there are many; the base run is `a`."""
    others = [run for run in runs if run is not runs.base]
    ordered = [runs.base, *others]
    chosen = (
        combinations(ordered, 2)
        if len(ordered) <= ALL_PAIRS
        else ((runs.base, other) for other in others)
    )
    for a, b in chosen:
        yield compare(a, b, runs.k)


def compare(a: Run, b: Run, k: int) -> Pair:
    """Two runs on their common tasks."""
    here, there = passes_by_task(a), passes_by_task(b)
    both = common(a, b, k)
    whole = [(_all(here[task]), _all(there[task])) for task in both]
    only_a = sum(x and not y for x, y in whole)
    only_b = sum(y and not x for x, y in whole)
    hat = differences_by_task(a, b, k, "pass_hat_k")
    return Pair(
        a=a,
        b=b,
        k=k,
        tasks=len(both),
        hat=paired_difference(hat),
        mean=paired_difference(differences_by_task(a, b, k, "pass_at_1")),
        only_a=only_a,
        only_b=only_b,
        p=mcnemar(only_a, only_b) if both else math.nan,
        p_attempts=_attempts_p(a, b),
        needed=more_tasks(hat),
    )


def _all(passes: tuple[int, int]) -> bool:
    return passes[0] == passes[1]


def _attempts_p(a: Run, b: Run) -> float:
    here, there = (
        {(e.task_id, e.attempt): e.outcome.value for e in run.episodes if e.outcome.graded}
        for run in (a, b)
    )
    same = set(common(a, b, 1))
    both = [key for key in here.keys() & there.keys() if key[0] in same]
    only_a = sum(here[key] == "passed" != there[key] for key in both)
    only_b = sum(there[key] == "passed" != here[key] for key in both)
    return mcnemar(only_a, only_b) if both else math.nan


def _curve(run: Run) -> Iterator[JsonObject]:
    most = max((n for n, _ in passes_by_task(run).values()), default=0)
    for k in range(1, most + 1):
        rates = summarise(run.episodes, k).rates
        row: JsonObject = {"run": run.label, "k": k, "n": 0}
        for name, found in (("hat", rates.pass_hat_k), ("at", rates.pass_at_k)):
            if found:
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
                row["n"] = found.n
        yield row


_PAIR = [
    *("a", "b", "comparable", "tasks", "hat", "hat_low", "hat_high", "only_a", "only_b", "p"),
    *("mean", "mean_low", "mean_high", "p_attempts", "settled", "needed"),
]


def _pair_row(pair: Pair) -> JsonObject:
    hat, average = pair.hat, pair.mean
    return {
        "a": pair.a.label,
        "b": pair.b.label,
        "hat": hat.value,
        "hat_low": hat.low,
        "hat_high": hat.high,
        "mean": average.value,
        "mean_low": average.low,
        "mean_high": average.high,
        **{
            name: getattr(pair, name)
            for name in ("comparable", "tasks", "only_a", "only_b", "p", "p_attempts", "settled")
        },
        "needed": pair.needed,
    }


def _spread(name: str) -> list[str]:
    return [name, f"{name}_low", f"{name}_high"]
