"""pass@k, pass^k and their intervals: pure functions.

The unit of uncertainty is the task: attempts at one task are not independent, so an interval describes
what another draw of tasks of the same kind would give, not what another draw of attempts would.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rollout.types import Episode, Outcome, Record

__all__ = [
    "Estimate",
    "Metrics",
    "Rates",
    "bootstrap_interval",
    "estimate",
    "mean",
    "pass_at_k",
    "pass_hat_k",
    "resampled_sums",
    "summarise",
    "summarise_by",
    "wilson_interval",
]


class Estimate(Record, frozen=True, kw_only=True):
    """A mean over tasks and its 95 % interval."""

    value: float
    low: float
    high: float
    n: int
    """The number of tasks behind it."""


class Rates(Record, frozen=True, kw_only=True):
    """The three figures that a table shows; None where no task allows the figure."""

    pass_hat_k: Estimate | None
    pass_at_k: Estimate | None
    pass_at_1: Estimate | None

    def named(self, k: int) -> dict[str, Estimate | None]:
        """By the names that people use: `pass^3`, `pass@3`, `pass@1`."""
        return {f"pass^{k}": self.pass_hat_k, f"pass@{k}": self.pass_at_k, "pass@1": self.pass_at_1}


class Metrics(Record, frozen=True, kw_only=True):
    """What a run, or a category of it, comes to."""

    k: int
    tasks: int
    """Tasks with at least one attempt that was not skipped."""
    attempted: int
    """Attempts that were not skipped."""
    graded: int
    """Attempts that passed or failed."""
    outcomes: dict[str, int]
    """Attempts by outcome, skipped ones included."""
    incomplete: tuple[str, ...]
    """Tasks with fewer than k graded attempts: left out of pass^k and pass@k."""
    rates: Rates
    """Over graded attempts."""
    pessimistic: Rates
    """The same with every attempt that has no grade, or was not made, counted as failed."""
    score: Estimate | None
    """The mean score of graded attempts, per task first."""


def pass_at_k(n: int, c: int, k: int) -> float:
    """The probability that at least one of k attempts passes, given c passes in n attempts.

    1 - C(n-c, k) / C(n, k), the unbiased estimator of Chen et al. 2021 (Evaluating Large Language Models
    Trained on Code, section 2.1). Raises ValueError unless 0 <= c <= n and 1 <= k <= n.
    """
    _check(n, c, k)
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The probability that all of k attempts pass, given c passes in n attempts.

    C(c, k) / C(n, k), the unbiased estimator of Yao et al. 2024 (tau-bench, section 3); for n = k that is
    "all attempts passed". It is not (c/n)^k, which is biased upwards. Raises ValueError unless
    0 <= c <= n and 1 <= k <= n.
    """
    _check(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean. Raises ValueError for no values."""
    if not values:
        raise ValueError("the mean of no values is not defined")
    return math.fsum(values) / len(values)


def wilson_interval(value: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The Wilson score interval of a proportion (Wilson 1927).

    (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n). It stays in [0, 1] and has a width even
    for 0 and n successes; Brown, Cai and DasGupta 2001 recommend it for n <= 40. For the mean of values
    in [0, 1] that are not all 0 or 1 it is on the safe side: none vary more than a coin's.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre = value + z * z / (2 * n)
    spread = z * math.sqrt(value * (1 - value) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # Rounding may put the bound of 0 or of 1 on the wrong side of it by one unit in the last place.
    low, high = (centre - spread) / scale, (centre + spread) / scale
    return max(0.0, min(low, value)), min(1.0, max(high, value))


def bootstrap_interval(
    per_task_values: Sequence[float],
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile bootstrap interval of the mean, resampling tasks (Efron 1979).

    Deterministic, and independent of the order of the values. Where all values are equal, resampling
    knows nothing of what it did not see and gives an interval of no width; then the Wilson interval is
    returned, so 10 of 10 passed reads [0.72, 1], not [1, 1]. Values must be in [0, 1].
    """
    values = np.asarray(per_task_values, dtype=float)
    if np.ptp(values) == 0:
        return wilson_interval(float(values[0]), len(values), confidence)
    means = resampled_sums(values, resamples, seed) / len(values)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def resampled_sums(
    values: NDArray[np.float64], resamples: int = 10_000, seed: int = 0
) -> NDArray[np.float64]:
    """Sums over tasks of (tasks, ...) values, tasks drawn with replacement: (resamples, ...).

    How often each distinct value is drawn is multinomial: the same as drawing tasks, in memory that does
    not grow with their number.
    """
    kinds, counts = np.unique(values, axis=0, return_counts=True)
    n = len(values)
    drawn = np.random.default_rng(seed).multinomial(n, counts / n, size=resamples)
    sums: NDArray[np.float64] = drawn @ kinds
    return sums


def estimate(per_task_values: Sequence[float]) -> Estimate | None:
    """The mean of values in [0, 1] with its 95 % interval; None for no values.

    Values that are all 0 or 1 (pass^k and pass@k of exactly k attempts) make a proportion, which has an
    interval of its own: Wilson's holds the truth in 94 to 97 of 100 runs where the bootstrap does in 88
    (36 tasks, true value 0.9). Anything else is bootstrapped over tasks.
    """
    if not per_task_values:
        return None
    value = mean(per_task_values)
    if set(per_task_values) <= {0.0, 1.0}:
        low, high = wilson_interval(value, len(per_task_values))
    else:
        low, high = bootstrap_interval(per_task_values)
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=len(per_task_values))


def summarise(episodes: Iterable[Episode], k: int) -> Metrics:
    """All figures of a run. Of several tries of an attempt the last one counts.

    A task with fewer than k graded attempts is listed as incomplete and left out of pass^k and pass@k;
    pass@1 and the score take every task with a graded attempt. The pessimistic figures leave nothing
    out: there, attempts without a grade fail, and a task with fewer than k attempts is filled up with
    failed ones. Skipped attempts count nowhere but in `outcomes`.
    """
    latest = {(episode.task_id, episode.attempt): episode for episode in episodes}.values()
    tasks: dict[str, list[Episode]] = {}
    for episode in latest:
        if episode.outcome is not Outcome.SKIPPED:
            tasks.setdefault(episode.task_id, []).append(episode)
    graded = {
        task: [episode for episode in attempts if episode.outcome.graded]
        for task, attempts in tasks.items()
    }
    return Metrics(
        k=k,
        tasks=len(tasks),
        attempted=sum(map(len, tasks.values())),
        graded=sum(map(len, graded.values())),
        outcomes=dict(Counter(episode.outcome.value for episode in latest)),
        incomplete=tuple(sorted(task for task, found in graded.items() if len(found) < k)),
        rates=_rates([(len(found), _passes(found)) for found in graded.values()], k),
        pessimistic=_rates([(max(len(all_), k), _passes(all_)) for all_ in tasks.values()], k),
        score=estimate([mean([_score(e) for e in found]) for found in graded.values() if found]),
    )


def summarise_by(
    episodes: Iterable[Episode], k: int, categories: Mapping[str, str]
) -> dict[str, Metrics]:
    """`summarise` per category, in the order of the names. `categories` maps a task's id to its own."""
    split: dict[str, list[Episode]] = {}
    for episode in episodes:
        split.setdefault(categories.get(episode.task_id, ""), []).append(episode)
    return {name: summarise(split[name], k) for name in sorted(split)}


def _check(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"need 0 <= c <= n and 1 <= k <= n, got n={n}, c={c}, k={k}")


def _rates(results: Sequence[tuple[int, int]], k: int) -> Rates:
    """From (attempts, passes) of each task."""
    return Rates(
        pass_hat_k=estimate([pass_hat_k(n, c, k) for n, c in results if n >= k]),
        pass_at_k=estimate([pass_at_k(n, c, k) for n, c in results if n >= k]),
        pass_at_1=estimate([pass_at_k(n, c, 1) for n, c in results if n >= 1]),
    )


def _passes(episodes: Sequence[Episode]) -> int:
    return sum(episode.outcome is Outcome.PASSED for episode in episodes)


def _score(episode: Episode) -> float:
    return episode.grade.score if episode.grade else 0.0
