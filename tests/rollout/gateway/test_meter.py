"""Waits that overlap count once."""

from hypothesis import given
from hypothesis import strategies as st

from rollout.gateway.meter import Meter


class Clock:
    def __init__(self):
        self.time = 0.0

    def __call__(self):
        return self.time


def test_overlapping_waits_count_once():
    clock = Clock()
    meter = Meter(clock)
    first = meter.begin()
    clock.time = 2.0
    second = meter.begin()
    clock.time = 3.0
    meter.end(first)
    clock.time = 5.0
    assert meter.seconds == 5.0
    meter.end(second)
    clock.time = 9.0
    assert meter.seconds == 5.0


def test_dropped_waits_do_not_count():
    clock = Clock()
    meter = Meter(clock)
    wait = meter.begin()
    clock.time = 4.0
    assert meter.seconds == 4.0
    meter.drop(wait)
    assert meter.seconds == 0.0


def test_freezing_counts_what_is_open_and_nothing_later():
    clock = Clock()
    meter = Meter(clock)
    with meter.waiting():
        clock.time = 3.0
        meter.freeze(clock.time)
        clock.time = 10.0
        assert meter.seconds == 3.0
    assert meter.seconds == 3.0


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=12), st.integers(0, 70))
def test_equals_the_union_of_intervals(spans, now):
    clock = Clock()
    meter = Meter(clock)
    points = sorted(
        [(start, 0, n) for n, (start, _) in enumerate(spans)]
        + [(start + length, 1, n) for n, (start, length) in enumerate(spans)]
    )
    begun = {}
    for time, kind, n in points:
        if time > now:
            break
        clock.time = float(time)
        if kind == 0:
            begun[n] = meter.begin()
        else:
            meter.end(begun[n])
    clock.time = float(now)
    covered = {t for start, n in spans for t in range(start, min(start + n, now))}
    assert meter.seconds == len(covered)
