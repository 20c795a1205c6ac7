"""Means over tasks with 95 % intervals, and two runs compared on the same tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd

from rollout.statistics import bootstrap_interval, estimate, mean, resampled_sums, wilson_interval

__all__ = [
    "NOTHING",
    "Interval",
    "mcnemar",
    "more_tasks",
    "over_tasks",
    "paired_difference",
]

SIGNIFICANCE, POWER = 0.05, 0.8


@dataclass(frozen=True)
class Interval:
    """A value and its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float
    n: int
    """The number of tasks behind it."""

    @property
    def settled(self) -> bool:
        """Whether the interval lies on one side of 0."""
        return self.low > 0 or self.high < 0


NOTHING = Interval(math.nan, math.nan, math.nan, 0)


def over_tasks(values: pd.Series[float], tasks: pd.Series[str], *, share: bool) -> Interval:
    """The mean of attempts' values, per task first, so that each task counts the same.

    Attempts without a value are left out. The interval describes another draw of tasks: Wilson's where
    all is 0 or 1, else a percentile bootstrap. A `share` lies in [0, 1]; other numbers that are all the
    same have no interval, for resampling knows nothing of what it did not see.
    """
    per_task = values.groupby(tasks).mean().dropna().tolist()
    if not per_task:
        return NOTHING
    if share:
        # A mean of ones may end one unit in the last place above 1.
        found = estimate([min(max(value, 0.0), 1.0) for value in per_task])
        assert found is not None
        return Interval(found.value, found.low, found.high, found.n)
    value = mean(per_task)
    if min(per_task) == max(per_task):
        return Interval(value, math.nan, math.nan, len(per_task))
    low, high = bootstrap_interval(per_task)
    return Interval(value, low, high, len(per_task))


def paired_difference(differences: Sequence[float], *, share: bool = True) -> Interval:
    """The mean of per-task differences, by a paired percentile bootstrap over tasks.

    Efron and Tibshirani 1993 (An Introduction to the Bootstrap, section 10.3). Where all differences are
    the same, resampling gives no width; then a `share`'s interval reaches as far as Wilson's upper bound
    of an event that was never seen in n tasks, and other numbers have none.
    """
    if not differences:
        return NOTHING
    # 1 - 2/3 and 2/3 - 1/3 are the same difference, though not the same float.
    d = np.round(np.asarray(differences, dtype=float), 12)
    value, n = mean(list(differences)), len(d)
    if np.ptp(d) == 0:
        reach = wilson_interval(0.0, n)[1] if share else math.nan
        return Interval(value, max(-1.0, value - reach), min(1.0, value + reach), n)
    low, high = np.quantile(resampled_sums(d) / n, [0.025, 0.975])
    return Interval(value, float(low), float(high), n)


def mcnemar(only_a: int, only_b: int) -> float:
    """The two-sided p-value of the exact McNemar test.

    Of the pairs that differ, each is as likely to favour a as b: a binomial test with one half (McNemar
    1947; the exact form: Fagerland, Lydersen and Laake 2013, section 2). 1 where no pair differs.
    """
    n = only_a + only_b
    tail = sum(math.comb(n, i) for i in range(min(only_a, only_b) + 1))
    return float(min(1.0, 2 * tail / 2**n))


def more_tasks(differences: Sequence[float]) -> float:
    """How many more tasks of this kind would settle a difference of this size.

    With a two-sided level of 5 % and a power of 80 %, paired data need
    n = (z_a sqrt(m2) + z_b sqrt(m2 - d^2))^2 / d^2 tasks, d being the mean difference and m2 its mean
    square; for passed or failed, m2 is the share of tasks that differ (Connor 1987, Sample size for
    testing differences in proportions for the paired-sample design). Infinite without a difference.
    """
    if not differences:
        return math.nan
    d = mean(list(differences))
    if d == 0:
        return math.inf
    square = mean([x * x for x in differences])
    z_a, z_b = NormalDist().inv_cdf(1 - SIGNIFICANCE / 2), NormalDist().inv_cdf(POWER)
    needed = (z_a * math.sqrt(square) + z_b * math.sqrt(max(0.0, square - d * d))) ** 2 / (d * d)
    return float(max(0, math.ceil(needed) - len(differences)))
