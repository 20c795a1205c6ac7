"""The benchmark's rollouts are what they are called, and ours are built right on each."""

import pytest

from benchmarks import samples

ROWS = {
    "linear": 1,
    "thinking stripped": 50,
    "compaction": 3,
    "3 sub-agents": 4,
    "retries": 1,
    "side calls": 10,
}


@pytest.mark.parametrize("shape", samples.SHAPES)
def test_no_token_is_duplicated_or_missing(shape: str) -> None:
    ours = samples.Ours()
    rows = list(ours.rows(ours.run(ours.take(samples.rollout(shape, 0)))))
    assert len(rows) == ROWS[shape]
    assert samples.judge(rows, shape, 1) == (0.0, 0.0)


def test_the_judge_sees_duplicated_and_missing_tokens() -> None:
    ours = samples.Ours()
    rows = list(ours.rows(ours.run(ours.take(samples.rollout("compaction", 0)))))
    assert samples.judge([*rows, *rows], "compaction", 1) == (1.0, 0.0)
    again, missing = samples.judge(rows[:1], "compaction", 1)
    assert again == 0
    assert 0.5 < missing < 0.8
