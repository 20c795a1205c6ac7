"""Tests and intervals against values that are known from elsewhere."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.intervals import mcnemar, more_tasks, over_tasks, paired_difference


@pytest.mark.parametrize(
    ("b", "c", "p"),
    # Two-sided binomial tests with one half: binom.test(b, b + c) in R.
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (0, 5, 0.0625),
        (0, 6, 0.03125),
        (2, 10, 0.03857421875),
        (3, 3, 1.0),
    ],
)
def test_exact_mcnemar(b: int, c: int, p: float) -> None:
    assert mcnemar(b, c) == pytest.approx(p)
    assert mcnemar(c, b) == pytest.approx(p)


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=40))
def test_a_paired_interval_holds_its_value_and_turns_with_the_sign(d: list[float]) -> None:
    found, turned = paired_difference(d), paired_difference([-x for x in d])
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.value == pytest.approx(-turned.value)
    assert found.low < found.high


def test_differences_that_are_all_the_same_still_have_a_width() -> None:
    none = paired_difference([0.0] * 10)
    assert none.low < 0 < none.high
    assert not none.settled
    assert paired_difference([1.0] * 10).settled
    thirds = paired_difference([1 - 2 / 3, 2 / 3 - 1 / 3, 1 / 3])
    assert thirds.low < 0 < thirds.high


def test_more_tasks_by_connors_formula() -> None:
    # 30 % of the tasks differ, 20 % net: (1.96 sqrt(.3) + .8416 sqrt(.3 - .04))^2 / .04 = 56.4
    d = [1.0] * 25 + [-1.0] * 5 + [0.0] * 70
    assert more_tasks(d) == 0
    assert more_tasks(d[:25:5] + [-1.0] + [0.0] * 14) == 57 - 20
    assert math.isinf(more_tasks([1.0, -1.0]))
    assert math.isnan(more_tasks([]))


def test_each_task_counts_the_same() -> None:
    values = pd.Series([1.0, 1.0, 1.0, 0.0, math.nan])
    tasks = pd.Series(["a", "a", "a", "b", "c"])
    found = over_tasks(values, tasks, share=True)
    assert (found.value, found.n) == (0.5, 2)


def test_numbers_that_are_all_the_same_have_no_interval() -> None:
    found = over_tasks(pd.Series([5.0, 5.0]), pd.Series(["a", "b"]), share=False)
    assert found.value == 5
    assert math.isnan(found.low)
