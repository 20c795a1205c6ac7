"""Advantages of tokens against the definitions of `train.credit`."""

import numpy as np
import pytest

from train.advantages import AdvantageRules, CreditedRow, token_advantages
from train.credit import anchor_advantages, discounted, group_advantages, step_advantages


def row(
    group: str, episode: str, reward: float, *turns: int, last: int = 0, **fields: object
) -> CreditedRow:
    """A row whose steps have two tokens each, and one between them."""
    starts = [3 * i for i in range(len(turns))]
    return CreditedRow(
        group=group,
        episode=episode,
        reward=reward,
        tokens=3 * len(turns) - 1,
        starts=starts,
        stops=[start + 2 for start in starts],
        turns=turns,
        last=[last or turns[-1]] * len(turns),
        **fields,  # type: ignore[arg-type]
    )


ROWS = [
    row("g", "g_0", 1.0, 0, 1),
    row("h", "h_0", 0.5, 0),
    row("g", "g_1", 0.0, 0),
    row("g", "g_0", 1.0, 2, last=2),
    row("h", "h_1", 0.25, 0),
]
"""An episode of two rows, and rows of two groups in no order."""


@pytest.mark.parametrize("estimator", ["grpo", "dr_grpo", "rloo"])
def test_an_episode_counts_once_however_many_rows_it_has(estimator: str) -> None:
    told = token_advantages(ROWS, AdvantageRules(estimator=estimator))  # type: ignore[arg-type]
    one, other = group_advantages([1.0, 0.0], estimator)  # type: ignore[arg-type]
    assert told[0].tolist() == [one, one, 0, one, one]
    assert told[2].tolist() == [other, other]
    assert told[3].tolist() == [one, one]


def test_below_gamma_1_each_step_has_its_own_return() -> None:
    told = token_advantages(ROWS, AdvantageRules(estimator="dr_grpo", gamma=0.5))
    returns = {"g_0": np.append(discounted(1, [0, 1], [1, 1], 0.5), 1.0), "g_1": [0.0]}
    wanted = step_advantages(returns)
    assert told[0][[0, 3]].tolist() == wanted["g_0"][:2].tolist()
    assert told[3][0] == wanted["g_0"][2]
    assert told[2][0] == wanted["g_1"][0]
    assert told[4].tolist() == [-0.125, -0.125]


def test_gigpo_adds_the_advantage_among_steps_of_the_same_state_in_the_group() -> None:
    rows = [
        row("g", "g_0", 1.0, 0, 1, anchors=("start", "later")),
        row("g", "g_1", 0.0, 0, anchors=("start",)),
        row("h", "h_0", 1.0, 0, anchors=("start",)),
        row("h", "h_1", 1.0, 0, anchors=("other",)),
    ]
    rules = AdvantageRules(estimator="dr_grpo", gamma=0.9, gigpo=2.0)
    told = token_advantages(rows, rules)
    steps = anchor_advantages(["start", "start"], [0.9, 0.0])
    assert told[0][0] == pytest.approx(0.5 + 2 * steps[0])
    assert told[0][3] == 0.5  # a state of its own
    assert told[1][0] == pytest.approx(-0.5 + 2 * steps[1])
    assert told[2].tolist() == told[3].tolist() == [0.0, 0.0]


def test_a_group_of_one_episode_has_no_baseline() -> None:
    with pytest.raises(ValueError, match="two rewards"):
        token_advantages(ROWS[:1], AdvantageRules())
