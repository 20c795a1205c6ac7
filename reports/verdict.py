"""The answer in words: which is more reliable, why, and how sure one can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from reports.behaviour import Measure
from reports.cells import shown
from reports.comparability import marks
from reports.intervals import Interval, paired_difference
from reports.load import Run, Runs
from reports.measured import Measured, measured
from reports.reliability import Pair, compare
from rollout.statistics import Estimate, summarise

__all__ = ["verdict"]

REASONS = 3
"""Differences in behaviour that are named."""


def verdict(runs: Runs) -> list[str]:
    """A paragraph for each comparison that the runs allow, then what forbids to compare some of them.

    Harnesses are compared for each model; where no model ran in several, the models of each harness;
    else all runs. Every word comes from the numbers of the other tables.
    """
    lines = [line for title, group in _groups(runs) for line in _compared(runs, title, group)]
    apart = dict.fromkeys(mark.run for mark in marks(runs) if not mark.minor)
    if apart:
        fields = dict.fromkeys(mark.field for mark in marks(runs) if not mark.minor)
        lines.append(
            f"Careful: {_listed(list(apart))} can't simply be compared with {runs.base.label}: other "
            f"{_listed(list(fields)[:5])}{' and more' if len(fields) > 5 else ''}. What looks like the "
            "harness or the model may be that."
        )
    return lines


def _groups(runs: Runs) -> Iterator[tuple[str, list[Run]]]:
    """What is compared with what: (title, runs)."""
    ways: tuple[tuple[str, Callable[[Run], str]], ...] = (
        ("With the model {}", lambda run: run.model),
        ("In the harness {}", lambda run: run.harness),
    )
    for title, key in ways:
        split: dict[str, list[Run]] = {}
        for run in runs:
            split.setdefault(key(run), []).append(run)
        several = {name: group for name, group in split.items() if len(group) > 1}
        if several:
            yield from ((title.format(name), group) for name, group in several.items())
            return
    yield "Of these runs", list(runs)


def _compared(runs: Runs, title: str, group: Sequence[Run]) -> Iterator[str]:
    rated = [(run, rate) for run in group if (rate := _rate(run, runs.k))]
    if not rated:
        yield f"{title}: nothing can be said yet, no task has {_times(runs.k)}."
        return
    rated.sort(key=lambda item: -item[1].value)
    (best, rate), others = rated[0], rated[1:]
    name = f"pass^{runs.k}" if runs.k > 1 else "pass@1"
    if not others:
        yield f"{best.label}: {name} {_rated(rate)}. There is nothing to compare it with."
        return
    if rate.value == others[0][1].value:
        names = [run.label for run, other in rated if other.value == rate.value]
        lead = f"{_listed(names)} are level in {name}, {_rated(rate)}"
    else:
        second, behind = others[0]
        lead = f"{best.label} leads in {name}, {_rated(rate)}; next is {second.label}, {_rated(behind)}"
    yield f"{title}, {lead}."
    for other, _ in others:
        pair = compare(other, best, runs.k)
        yield f"{_sure(pair, name)}{_why(runs, pair)}"


def _rate(run: Run, k: int) -> Estimate | None:
    return summarise(run.episodes, k).rates.pass_hat_k


def _sure(pair: Pair, name: str) -> str:
    """How sure one can be that b, the leader, is better than a."""
    versus = f"{pair.b.label} against {pair.a.label}"
    if not pair.tasks:
        return f"{versus}: they have no task in common with {_times(pair.k)} in both."
    numbers = (
        f"on the {pair.tasks} tasks that both ran, {name} differs by {_points(pair.hat)} "
        f"(paired bootstrap over tasks), {pair.only_b} tasks passed every time only in the former and "
        f"{pair.only_a} only in the latter, p = {shown(pair.p, 'number')} (exact McNemar)"
    )
    if pair.settled:
        return f"{versus}: the difference is settled: {numbers}."
    return f"{versus}: can't tell them apart at n = {pair.tasks}: {numbers}. {_more(pair)}"


def _more(pair: Pair) -> str:
    if math.isinf(pair.needed):
        return "They are level, so no number of further tasks is known to be enough."
    if pair.needed:
        return f"About {pair.needed:.0f} more tasks of this kind would settle a difference of this size."
    return "Test and interval disagree on it: take more tasks."


def _why(runs: Runs, pair: Pair) -> str:
    """What differs beside the result: endings without a grade, and behaviour."""
    parts = []
    ends = [_ends(run) for run in (pair.b, pair.a)]
    if any(ends):
        parts.append(f"without a grade ended {ends[0] or 'none'} against {ends[1] or 'none'}")
    found = measured(runs)
    for measure, _ in _strongest(found, pair):
        values = [found.value(run.label, measure).value for run in (pair.b, pair.a)]
        this, that = (shown(value, measure.kind) for value in values)
        parts.append(f"{measure.label} {this} against {that}")
    return (
        f" What differs: {'; '.join(parts)}."
        if parts
        else " No measure of behaviour differs clearly."
    )


def _ends(run: Run) -> str:
    counts: dict[str, int] = {}
    for episode in run.episodes:
        if not episode.outcome.graded:
            what = (
                f"{episode.outcome.value} ({episode.cause})" if episode.cause else episode.outcome
            )
            counts[what] = counts.get(what, 0) + 1
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))


def _strongest(found: Measured, pair: Pair) -> list[tuple[Measure, Interval]]:
    """The measures whose paired interval over tasks lies beside 0, the clearest first."""
    a, b = (found.of(run.label).groupby("task") for run in (pair.a, pair.b))
    clear = []
    for measure in found.measures:
        d = (b[measure.name].mean() - a[measure.name].mean()).dropna().tolist()
        interval = paired_difference(d, share=measure.share)
        if interval.settled:
            width = interval.high - interval.low  # 0 when every task agrees
            clear.append((abs(interval.value) / (width or math.inf), measure, interval))
    clear.sort(key=lambda item: -item[0])
    return [(measure, interval) for _, measure, interval in clear[:REASONS]]


def _rated(rate: Estimate) -> str:
    return f"{rate.value:.0%} [{100 * rate.low:.0f}, {100 * rate.high:.0f}] of {rate.n} tasks"


def _points(d: Interval) -> str:
    return f"{100 * d.value:+.0f} points [{100 * d.low:+.0f}, {100 * d.high:+.0f}]"


def _times(k: int) -> str:
    return f"{k} graded attempts" if k > 1 else "a graded attempt"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
