"""The answer in words: which is more reliable, why, and how sure one can be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reports.behaviour import Measure
from reports.cells import shown
from reports.comparability import unfinished
from reports.cross_harness import passes_by_task
from reports.intervals import Interval, paired_difference
from reports.load import Run, Runs
from reports.measured import Measured, measured
from reports.reliability import Pair, compare
from rollout.statistics import Estimate, estimate, mean, pass_hat_k

__all__ = ["verdict"]

REASONS = 3
"""Differences in behaviour that are named."""
FIELDS = 5
"""Fields of the manifests that are named."""
REPEATED = ("shell_share_passed",)
"""Measures that say what another says already."""


@dataclass(frozen=True)
class _Rated:
    """A run within its group."""

    run: Run
    name: str
    """As short as tells it apart in the group."""
    rate: Estimate
    """pass^k."""
    average: float
    """pass@1, which ranks runs that are level in pass^k."""

    @property
    def figure(self) -> str:
        return f"{self.rate.value:.0%} [{100 * self.rate.low:.0f}, {100 * self.rate.high:.0f}]"


def verdict(runs: Runs) -> list[str]:
    """Which is more reliable, how sure that is, and what else differs: a paragraph a comparison.

    Harnesses are compared for each model; where no model ran in several, the models of each harness;
    else all runs. Every word comes from the numbers of the other tables. Then the runs
    that have not ended.
    """
    compared = [
        line
        for title, group, name in _groups(runs)
        for line in _compared(measured(runs), runs.k, title, group, name)
    ]
    return [*compared, *(f"{line}." for line in unfinished(runs))]


def _groups(runs: Runs) -> Iterator[tuple[str, list[Run], Callable[[Run], str]]]:
    """What is compared with what: title, runs, and what a run is called beside the others."""
    model, harness = (lambda run: run.model), (lambda run: run.harness)
    ways: tuple[tuple[str, Callable[[Run], str], Callable[[Run], str]], ...] = (
        ("With the model {}", model, harness),
        ("In the harness {}", harness, model),
    )
    for title, key, name in ways:
        split: dict[str, list[Run]] = {}
        for run in runs:
            split.setdefault(key(run), []).append(run)
        several = {value: group for value, group in split.items() if len(group) > 1}
        if several:
            yield from ((title.format(value), group, name) for value, group in several.items())
            return
    yield "Of these runs", list(runs), lambda run: run.label


def _compared(
    found: Measured, k: int, title: str, group: Sequence[Run], name: Callable[[Run], str]
) -> Iterator[str]:
    rated, where = _ranked(k, group, name)
    figure = f"pass^{k}" if k > 1 else "pass@1"
    if not rated:
        yield f"{title}: nothing can be said yet, no task has {_times(k)}."
        return
    best, others = rated[0], rated[1:]
    if not others:
        yield f"{best.run.label}: {figure} {best.figure}, {where}. Nothing to compare it with."
        return
    second = others[0]
    level = best.rate.value == second.rate.value
    lead = f"{best.name} and {second.name} are level" if level else f"{best.name} is ahead"
    both = best.figure if level else f"{best.figure} against {second.figure} of {second.name}"
    pair = compare(second.run, best.run, k)
    yield (
        f"{title}, {lead}: {figure} {both}, {where}. "
        + " ".join(filter(None, (_sure(pair, figure), _careful(pair), _why(found, pair))))
    )
    if rest := [_briefly(compare(other.run, best.run, k), other) for other in others[1:]]:
        yield f"The others against {best.name}: {'; '.join(rest)}."


def _ranked(k: int, group: Sequence[Run], name: Callable[[Run], str]) -> tuple[list[_Rated], str]:
    """The best first, on the tasks that all of them can be compared on, and which these are.

    Where there is no such task, each stands on its own.
    """
    passes = {run.label: passes_by_task(run) for run in group}
    enough = [{t for t, (n, _) in found.items() if n >= k} for found in passes.values()]
    shared = set.intersection(*enough)
    names = Counter(map(name, group))
    rated = []
    for run, own in zip(group, enough, strict=True):
        chosen = [passes[run.label][task] for task in sorted(shared or own)]
        rate = estimate([pass_hat_k(n, c, k) for n, c in chosen])
        if rate:
            short = name(run) if names[name(run)] == 1 else run.label
            rated.append(_Rated(run, short, rate, mean([c / n for n, c in chosen])))
    rated.sort(key=lambda item: (-item.rate.value, -item.average))
    who = "both" if len(group) == 2 else "all of them"
    several = f"the {len(shared)} tasks that {who} ran" if len(group) > 1 else "its tasks"
    return rated, f"on {several}" if shared else "each on its own tasks"


def _sure(pair: Pair, figure: str) -> str:
    """How sure one can be that b, the leader, is better than a."""
    if not pair.tasks:
        return f"They have no task in common with {_times(pair.k)} in both, so nothing is sure."
    numbers = (
        f"{figure} differs by {_points(pair.hat)} (paired bootstrap over {pair.tasks} tasks), "
        f"{pair.only_b} tasks were passed every time by the first alone and {pair.only_a} by the second "
        f"alone, p = {shown(pair.p, 'number')} (exact McNemar)"
    )
    if pair.settled:
        return f"That is settled: {numbers}."
    return f"Can't tell them apart at n = {pair.tasks}: {numbers}. {_more(pair)}"


def _more(pair: Pair) -> str:
    if math.isinf(pair.needed):
        return "Level as they are, no number of tasks would settle it."
    if pair.needed:
        return f"About {pair.needed:.0f} more tasks of this kind would settle a difference of this size."
    return "The interval and the test disagree, which a few more tasks would settle."


def _careful(pair: Pair) -> str:
    fields = pair.differing[:FIELDS]
    if not fields:
        return ""
    return f"Careful: {_listed(fields)} differ as well, which may be the reason."


def _why(found: Measured, pair: Pair) -> str:
    """What differs beside the result: endings without a grade, and behaviour."""
    parts = []
    ends = [_ends(run) for run in (pair.b, pair.a)]
    if any(ends):
        parts.append(f"without a grade ended {ends[0] or 'none'} against {ends[1] or 'none'}")
    for measure in _strongest(found, pair):
        values = [found.value(run.label, measure).value for run in (pair.b, pair.a)]
        this, that = (shown(value, measure.kind) for value in values)
        parts.append(f"{measure.label} {this} against {that}")
    if not parts:
        return "No measure of behaviour differs clearly."
    return f"What differs in the records: {'; '.join(parts)}."


def _briefly(pair: Pair, other: _Rated) -> str:
    sure = "settled" if pair.settled else f"can't tell at n = {pair.tasks}"
    fields = pair.differing[:FIELDS]
    apart = f", other {_listed(fields)}" if fields else ""
    return f"{other.name} {other.figure} (p = {shown(pair.p, 'number')}, {sure}{apart})"


def _ends(run: Run) -> str:
    counts = Counter(
        f"{e.outcome.value} ({e.cause})" if e.cause else e.outcome.value
        for e in run.episodes
        if not e.outcome.graded
    )
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))


def _strongest(found: Measured, pair: Pair) -> list[Measure]:
    """The measures whose paired interval over tasks lies beside 0, the clearest first."""
    a, b = (found.of(run.label).groupby("task") for run in (pair.a, pair.b))
    clear: list[tuple[float, Measure]] = []
    for measure in found.measures:
        d = (b[measure.name].mean() - a[measure.name].mean()).dropna().tolist()
        interval = paired_difference(d, share=measure.share)
        if interval.settled and measure.name not in REPEATED:
            clear.append((abs(interval.value) / (interval.high - interval.low), measure))
    clear.sort(key=lambda item: -item[0])
    return [measure for _, measure in clear[:REASONS]]


def _points(d: Interval) -> str:
    return f"{100 * d.value:+.0f} points [{100 * d.low:+.0f}, {100 * d.high:+.0f}]"


def _times(k: int) -> str:
    return f"{k} graded attempts" if k > 1 else "a graded attempt"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
