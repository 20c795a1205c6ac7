"""How far a judge agrees with the truth: rates, Cohen's kappa, bias, with intervals over tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from rollout.statistics import Estimate, resampled_sums, wilson_interval
from rollout.types import Record

__all__ = ["Agreement", "Case", "measure"]

TAIL = 0.025

Counts = npt.NDArray[np.float64]
"""The last axis is: both success, judge alone, truth alone, both failure."""
Measure = Callable[[Counts], Counts]


class Case(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One attempt, as the verifier and as the judge see it."""

    episode: str
    task: str
    truth: bool
    judge: bool | None
    """None where the judge gave no verdict."""
    score: float | None = None
    reason: str = ""
    """The judge's reasoning, or its error, in one line."""


class Agreement(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A judge against the truth. An estimate is None where there is nothing to estimate it from.

    `n` of an estimate counts tasks: attempts at one task are not independent.
    """

    judged: int
    errors: int
    """Attempts without a verdict: in none of the figures."""
    both_success: int
    judge_only: int
    """The judge says success, the truth is failure."""
    truth_only: int
    both_failure: int
    agreement: Estimate | None
    kappa: Estimate | None
    """Cohen 1960: 0 is chance, 1 is always. None where judge and truth never vary."""
    false_success: Estimate | None
    """Of the attempts that failed, those that the judge calls a success."""
    false_failure: Estimate | None
    """Of the attempts that succeeded, those that the judge calls a failure."""
    bias: Estimate | None
    """The judge's success rate minus the true one: above 0 it is lenient."""


def measure(cases: Iterable[Case]) -> Agreement:
    """All figures. Intervals are 95 %: bootstrap over tasks, Wilson's where that has no width."""
    cases = list(cases)
    judged = [case for case in cases if case.judge is not None]
    tasks = {name: n for n, name in enumerate(dict.fromkeys(case.task for case in judged))}
    counts = np.zeros((len(tasks), 4))
    for case in judged:
        counts[tasks[case.task], 2 * (not case.judge) + (not case.truth)] += 1
    total = counts.sum(axis=0)
    return Agreement(
        judged=len(judged),
        errors=len(cases) - len(judged),
        both_success=int(total[0]),
        judge_only=int(total[1]),
        truth_only=int(total[2]),
        both_failure=int(total[3]),
        agreement=_rate(counts, of=(0, 1, 2, 3), hits=(0, 3)),
        kappa=_kappa(counts),
        false_success=_rate(counts, of=(1, 3), hits=(1,)),
        false_failure=_rate(counts, of=(0, 2), hits=(2,)),
        bias=_bias(counts),
    )


def _rate(counts: Counts, of: Sequence[int], hits: Sequence[int]) -> Estimate | None:
    """A proportion of the attempts in some cells."""
    counts = counts[counts[:, of].sum(axis=1) > 0]
    if not len(counts):
        return None

    def rate(cells: Counts) -> Counts:
        share: Counts = cells[..., hits].sum(axis=-1) / cells[..., of].sum(axis=-1)
        return share

    value = float(rate(counts.sum(axis=0)))
    single = bool((counts[:, of].sum(axis=1) == 1).all())
    low, high = _resampled(counts, rate)
    if single or low == high:
        low, high = wilson_interval(value, len(counts))
    return _estimate(value, low, high, len(counts))


def _kappa(counts: Counts) -> Estimate | None:
    if not len(counts):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(_cohen(counts.sum(axis=0)))
        low, high = _resampled(counts, _cohen)
    if np.isnan(value):
        return None
    if low == high:
        # Resampling knows no other agreement than the one it sees; Wilson's interval does.
        at_worst, at_best = wilson_interval(_agreed(counts.sum(axis=0)), len(counts))
        chance = float(_chance(counts.sum(axis=0)))
        low, high = ((rate - chance) / (1 - chance) for rate in (at_worst, at_best))
    return _estimate(value, max(low, -1.0), high, len(counts))


def _bias(counts: Counts) -> Estimate | None:
    if not len(counts):
        return None

    def bias(cells: Counts) -> Counts:
        more: Counts = (cells[..., 1] - cells[..., 2]) / cells.sum(axis=-1)
        return more

    value = float(bias(counts.sum(axis=0)))
    low, high = _resampled(counts, bias)
    if low == high:
        off = wilson_interval(abs(value), len(counts))
        low, high = (
            (-off[1], off[1]) if not value else sorted(np.sign(value) * each for each in off)
        )
    return _estimate(value, low, high, len(counts))


def _agreed(cells: Counts) -> float:
    return float((cells[0] + cells[3]) / cells.sum())


def _chance(cells: Counts) -> Counts:
    """The agreement of two who keep their rates of success, and nothing else."""
    n = cells.sum(axis=-1)
    judge = (cells[..., 0] + cells[..., 1]) / n
    truth = (cells[..., 0] + cells[..., 2]) / n
    expected: Counts = judge * truth + (1 - judge) * (1 - truth)
    return expected


def _cohen(cells: Counts) -> Counts:
    observed = (cells[..., 0] + cells[..., 3]) / cells.sum(axis=-1)
    expected = _chance(cells)
    kappa: Counts = (observed - expected) / (1 - expected)
    return kappa


def _resampled(counts: Counts, value: Measure) -> tuple[float, float]:
    """The percentile bootstrap over tasks (Efron 1979), without the draws that leave it undefined."""
    values = value(resampled_sums(counts))
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 0.0
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    return float(low), float(high)


def _estimate(value: float, low: float, high: float, n: int) -> Estimate:
    return Estimate(value=value, low=min(float(low), value), high=max(float(high), value), n=n)
