"""Agreement, kappa, bias and their intervals, against figures that are known."""

import itertools

import pytest

from judges.agreement import Case, measure


def cases(both: int, judge: int, truth: int, neither: int, attempts: int = 1) -> list[Case]:
    """So many attempts of each kind, `attempts` at one task."""
    cells = ((True, True), (True, False), (False, True), (False, False))
    said = itertools.chain(
        *(
            itertools.repeat(cell, n)
            for cell, n in zip(cells, (both, judge, truth, neither), strict=True)
        )
    )
    return [
        Case(episode=str(n), task=str(n // attempts), judge=judged, truth=true)
        for n, (judged, true) in enumerate(said)
    ]


def test_the_textbook_example() -> None:
    """Two readers, 50 grants: kappa 0.40 (Wikipedia, Cohen's kappa)."""
    found = measure(cases(20, 5, 10, 15))
    assert (found.both_success, found.judge_only, found.truth_only, found.both_failure) == (
        20,
        5,
        10,
        15,
    )
    assert found.agreement is not None
    assert found.agreement.value == pytest.approx(0.70)
    assert found.kappa is not None
    assert found.kappa.value == pytest.approx(0.40)
    # The large-sample standard error is 0.127 (Fleiss, Cohen and Everitt 1969).
    assert (found.kappa.low, found.kappa.high) == pytest.approx((0.15, 0.64), abs=0.03)
    assert found.false_success is not None
    assert found.false_success.value == pytest.approx(5 / 20)
    assert found.false_failure is not None
    assert found.false_failure.value == pytest.approx(10 / 30)
    assert found.bias is not None
    assert found.bias.value == pytest.approx(-0.10)
    assert found.bias.low < -0.10 < found.bias.high


def test_a_perfect_judge_is_not_known_to_be_perfect() -> None:
    found = measure(cases(10, 0, 0, 10))
    assert found.agreement is not None
    assert found.kappa is not None
    assert found.bias is not None
    assert (found.agreement.value, found.kappa.value, found.bias.value) == (1, 1, 0)
    assert found.agreement.low == pytest.approx(0.839, abs=0.001)
    assert found.kappa.low == pytest.approx(0.678, abs=0.001)
    assert found.bias.low == -found.bias.high == pytest.approx(-0.161, abs=0.001)


def test_attempts_at_one_task_count_as_one_draw() -> None:
    alone, clustered = measure(cases(30, 10, 0, 20)), measure(cases(30, 10, 0, 20, attempts=10))
    assert alone.agreement is not None
    assert clustered.agreement is not None
    assert alone.agreement.value == clustered.agreement.value
    assert clustered.agreement.n == 6
    assert clustered.agreement.low < alone.agreement.low


def test_what_can_not_be_known_is_not_said() -> None:
    nothing = measure([Case(episode="1", task="1", truth=True, judge=None)])
    assert (nothing.judged, nothing.errors, nothing.agreement, nothing.kappa) == (0, 1, None, None)
    lenient = measure(cases(5, 0, 0, 0))
    assert (lenient.kappa, lenient.false_success) == (None, None)
    assert lenient.false_failure is not None
    assert lenient.false_failure.value == 0
    assert lenient.false_failure.high == pytest.approx(0.43, abs=0.01)
    always = measure(cases(5, 5, 0, 0))
    assert always.kappa is not None
    assert always.kappa.value == 0
    assert always.bias is not None
    assert always.bias.value == 0.5


def test_the_order_of_the_cases_makes_no_difference() -> None:
    some = cases(7, 3, 2, 8, attempts=4)
    assert measure(some) == measure(list(reversed(some)))
