"""Estimators against hand-worked values, laws that they must obey, and Inspect's reducers."""

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.statistics import (
    bootstrap_interval,
    estimate,
    mean,
    pass_at_k,
    pass_hat_k,
    summarise,
    summarise_by,
    wilson_interval,
)
from rollout.types import Episode, Grade, Outcome


@st.composite
def counts(draw):
    n = draw(st.integers(1, 12))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


@pytest.mark.parametrize(
    ("n", "c", "k", "at", "hat"),
    [
        (3, 0, 3, 0.0, 0.0),
        (3, 2, 3, 1.0, 0.0),  # (2/3)^3 = 0.296 would be wrong: it did not pass three times
        (3, 3, 3, 1.0, 1.0),
        (3, 2, 1, 2 / 3, 2 / 3),
        (4, 2, 2, 5 / 6, 1 / 6),
        (5, 3, 3, 1.0, 0.1),
        (10, 1, 3, 0.3, 0.0),
    ],
)
def test_hand_worked_values(n, c, k, at, hat):
    assert pass_at_k(n, c, k) == pytest.approx(at)
    assert pass_hat_k(n, c, k) == pytest.approx(hat)


@given(counts())
def test_estimators_are_the_share_of_subsets(numbers):
    n, c, k = numbers
    attempts = [1] * c + [0] * (n - c)
    subsets = list(itertools.combinations(attempts, k))
    assert pass_at_k(n, c, k) == pytest.approx(mean([any(s) for s in subsets]))
    assert pass_hat_k(n, c, k) == pytest.approx(mean([all(s) for s in subsets]))


@given(counts())
def test_order_of_the_three_figures(numbers):
    n, c, k = numbers
    assert pass_hat_k(n, c, k) <= c / n + 1e-12
    assert pass_at_k(n, c, k) >= c / n - 1e-12
    assert pass_at_k(n, c, k) == pytest.approx(1 - pass_hat_k(n, n - c, k))


@given(st.floats(0, 1), st.integers(1, 6), st.integers(0, 6))
def test_estimators_are_unbiased(p, k, extra):
    n = k + extra
    weights = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    expected = sum(w * pass_hat_k(n, c, k) for c, w in enumerate(weights))
    assert expected == pytest.approx(p**k, abs=1e-9)
    expected = sum(w * pass_at_k(n, c, k) for c, w in enumerate(weights))
    assert expected == pytest.approx(1 - (1 - p) ** k, abs=1e-9)


@pytest.mark.parametrize(("n", "c", "k"), [(2, 1, 3), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_impossible_counts_are_refused(n, c, k):
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="need 0 <= c <= n"):
            function(n, c, k)


def test_agreement_with_inspect():
    scorer = pytest.importorskip("inspect_ai.scorer", reason="needs the extra 'inspect'")
    for n, k in ((3, 1), (3, 3), (5, 2), (8, 3)):
        for c in range(n + 1):
            scores = [scorer.Score(value=1.0 if i < c else 0.0) for i in range(n)]
            assert scorer.pass_at(k)(scores).value == pytest.approx(pass_at_k(n, c, k))
            assert scorer.pass_k(k)(scores).value == pytest.approx(pass_hat_k(n, c, k))


def test_wilson_against_published_values():
    # Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    for passed, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert wilson_interval(passed / n, n) == pytest.approx((low, high), abs=5e-5)


@given(st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0]), min_size=1, max_size=60))
@settings(max_examples=50)
def test_an_interval_holds_its_estimate_and_is_never_a_point(values):
    found = estimate(values)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high > found.low
    assert found.n == len(values)
    assert estimate(values[::-1]) == found


def test_all_passed_is_not_certainty():
    assert bootstrap_interval([1.0] * 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert estimate([1.0]).low == pytest.approx(0.2065, abs=1e-4)
    assert estimate([2 / 3] * 5).low < 2 / 3 < estimate([2 / 3] * 5).high


def test_the_bootstrap_agrees_with_resampling_task_by_task():
    values = [0.0] * 4 + [1 / 3] * 9 + [1.0] * 17
    rng = np.random.default_rng(3)
    means = rng.choice(values, size=(20_000, len(values))).mean(axis=1)
    assert bootstrap_interval(values) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.02)
    assert bootstrap_interval(values) == bootstrap_interval(random.Random(0).sample(values, 30))


@pytest.mark.parametrize("p", [0.5, 0.8, 0.9, 0.98])
def test_intervals_hold_the_truth_as_often_as_they_say(p):
    """pass^3 and pass@1 of 36 tasks whose attempts pass with a task's own probability, mean `p`."""
    rng = np.random.default_rng(7)
    rates = rng.beta(8 * p, 8 * (1 - p), size=(400, 36))
    passes = rng.binomial(3, rates)
    truth = np.mean(rng.beta(8 * p, 8 * (1 - p), size=1_000_000) ** 3)
    hat = [estimate([pass_hat_k(3, int(c), 3) for c in run]) for run in passes]
    one = [estimate([int(c) / 3 for c in run]) for run in passes]
    assert mean([e.low <= truth <= e.high for e in hat]) >= 0.92
    assert mean([e.low <= p <= e.high for e in one]) >= 0.9


def attempts(task: str, *outcomes: Outcome, score: float | None = None) -> list[Episode]:
    return [
        Episode(
            id=f"{task}#{number}",
            task_id=task,
            attempt=number,
            outcome=outcome,
            grade=Grade(
                score=float(outcome is Outcome.PASSED) if score is None else score,
                passed=outcome is Outcome.PASSED,
            )
            if outcome.graded
            else None,
        )
        for number, outcome in enumerate(outcomes)
    ]


P, F, E, S = Outcome.PASSED, Outcome.FAILED, Outcome.INFRA_ERROR, Outcome.SKIPPED


def test_summary_of_a_clean_run():
    found = summarise(
        [*attempts("a", P, P, P), *attempts("b", P, F, P), *attempts("c", F, F, F)], 3
    )
    assert (found.tasks, found.attempted, found.graded) == (3, 9, 9)
    assert found.outcomes == {"passed": 5, "failed": 4}
    assert found.rates.pass_hat_k.value == pytest.approx(1 / 3)
    assert found.rates.pass_at_k.value == pytest.approx(2 / 3)
    assert found.rates.pass_at_1.value == pytest.approx(5 / 9)
    assert found.score.value == pytest.approx(5 / 9)
    assert found.pessimistic == found.rates
    assert set(found.rates.named(3)) == {"pass^3", "pass@3", "pass@1"}


def test_an_error_is_no_zero_but_the_pessimistic_figure_says_what_if():
    found = summarise(
        [*attempts("a", P, P, P), *attempts("b", P, P, E), *attempts("c", E, E, E)], 3
    )
    assert (found.attempted, found.graded, found.incomplete) == (9, 5, ("b", "c"))
    assert (found.rates.pass_hat_k.value, found.rates.pass_hat_k.n) == (1.0, 1)
    assert (found.rates.pass_at_1.value, found.rates.pass_at_1.n) == (1.0, 2)
    assert found.pessimistic.pass_hat_k.value == pytest.approx(1 / 3)
    assert found.pessimistic.pass_at_k.value == pytest.approx(2 / 3)
    assert found.pessimistic.pass_at_1.value == pytest.approx((1 + 2 / 3) / 3)
    assert found.pessimistic.pass_hat_k.n == 3


def test_the_last_try_of_an_attempt_counts():
    first = Episode(id="a#0", task_id="a", attempt=0, outcome=E)
    again = Episode(
        id="a#0.1",
        task_id="a",
        attempt=0,
        retry=1,
        outcome=P,
        grade=Grade(score=1.0, passed=True),
    )
    found = summarise([first, again], 1)
    assert (found.attempted, found.outcomes) == (1, {"passed": 1})


def test_skipped_and_missing_attempts():
    found = summarise([*attempts("a", P, P), *attempts("b", S, S, S)], 3)
    assert (found.tasks, found.attempted, found.incomplete) == (1, 2, ("a",))
    assert found.outcomes == {"passed": 2, "skipped": 3}
    assert found.rates.pass_hat_k is None
    assert found.pessimistic.pass_hat_k.value == 0.0


def test_nothing_at_all():
    found = summarise([], 3)
    assert found.rates.named(3) == {"pass^3": None, "pass@3": None, "pass@1": None}
    assert found.score is None


def test_categories():
    episodes = [*attempts("a", P), *attempts("b", F), *attempts("c", P, score=0.8)]
    found = summarise_by(episodes, 1, {"a": "mail", "b": "mail", "c": "crm"})
    assert list(found) == ["crm", "mail"]
    assert found["mail"].rates.pass_at_1.value == 0.5
    assert found["crm"].score.value == 0.8
