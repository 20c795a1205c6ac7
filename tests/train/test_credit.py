"""Returns, advantages, weights, and what becomes of episodes that are not clean."""

import numpy as np
import pytest
from support.traces import episode

from rollout.types import Episode, Grade, Outcome
from train.credit import (
    CreditRules,
    anchor_advantages,
    assign,
    discounted,
    group_advantages,
    loss_weights,
    overlong_penalty,
    prefix_values,
    reward_of,
    step_advantages,
    world_values,
)


def group(*scores: float, task: str = "task") -> list[Episode]:
    return [episode(task, attempt, score) for attempt, score in enumerate(scores)]


def broken(attempt: int = 9, **more: object) -> Episode:
    fields = {"outcome": Outcome.INFRA_ERROR, "cause": "model", "grade": None}
    return episode(attempt=attempt, **(fields | more))


def test_grpo_is_what_verl_computes() -> None:
    """Figures of verl 0.9.1's `compute_grpo_outcome_advantage`."""
    assert group_advantages([1, 0]).tolist() == pytest.approx([0.7071058, -0.7071058], abs=1e-6)
    assert group_advantages([1, 0], "dr_grpo").tolist() == [0.5, -0.5]


def test_rloo_leaves_the_episode_itself_out_of_its_baseline() -> None:
    assert group_advantages([1, 0, 0.5], "rloo").tolist() == pytest.approx([0.75, -0.75, 0.0])


def test_equal_rewards_have_advantages_of_exactly_zero() -> None:
    assert group_advantages([0.1, 0.1, 0.1]).tolist() == [0, 0, 0]


def test_a_group_of_one_has_no_baseline() -> None:
    with pytest.raises(ValueError, match="no baseline"):
        group_advantages([1.0])
    credits, report = assign([*group(1.0), broken()])
    assert credits == {}
    assert (report.groups, report.too_small, report.unclean) == (1, 1, 1)


def test_groups_are_compared_within_themselves() -> None:
    rules = CreditRules(estimator="dr_grpo")
    credits, report = assign([*group(1, 0), *group(0.5, 0.25, task="b")], rules)
    assert [credit.advantage for credit in credits.values()] == [0.5, -0.5, 0.125, -0.125]
    assert (report.groups, report.clean, report.trained) == (2, 4, 4)


def test_equal_groups_are_counted_and_filtered_on_request() -> None:
    episodes = [*group(1, 1), *group(1, 0, task="b")]
    credits, report = assign(episodes)
    assert (len(credits), report.zero_variance) == (4, 1)
    credits, report = assign(episodes, CreditRules(zero_variance="filter"))
    assert (len(credits), report.zero_variance, report.trained) == (2, 1, 2)


@pytest.mark.parametrize(
    ("policy", "advantages", "trained"),
    [
        ("drop", {"task#0": 0.5, "task#1": -0.5}, 2),
        ("mask", {"task#0": 2 / 3, "task#1": -1 / 3, "task#9": -1 / 3}, 2),
        ("score", {"task#0": 2 / 3, "task#1": -1 / 3, "task#9": -1 / 3}, 3),
    ],
)
def test_what_is_not_clean_is_treated_as_the_policy_says(
    policy: str, advantages: dict[str, float], trained: int
) -> None:
    rules = CreditRules(estimator="dr_grpo", unclean=policy)  # type: ignore[arg-type]
    credits, report = assign([*group(1, 0), broken()], rules)
    assert {name: credit.advantage for name, credit in credits.items()} == pytest.approx(advantages)
    assert (report.unclean, report.trained) == (1, trained)


def test_what_was_skipped_never_counts() -> None:
    skipped = broken(outcome=Outcome.SKIPPED)
    credits, _ = assign([*group(1, 0), skipped], CreditRules(unclean="score"))
    assert skipped.id not in credits


def test_a_timeout_of_the_policy_is_a_failure_whatever_its_grade() -> None:
    late = episode(score=1.0, outcome=Outcome.FAILED, timed_out=60.0, cause="policy")
    assert reward_of(late) == 0.0
    assert reward_of(late, CreditRules(timeouts="drop")) is None


def test_rewards_are_scores_or_passes() -> None:
    half = episode(score=0.6)
    assert reward_of(half) == 0.6
    assert reward_of(half, CreditRules(reward="passed")) == 1.0
    assert reward_of(broken()) is None


def test_an_interrupted_episode_can_be_given_a_value() -> None:
    left = broken(grade=Grade(score=0.25, passed=False))
    values = world_values([*group(1, 0), left])
    assert values == {left.id: 0.25}
    credits, report = assign([*group(1, 0), left], values=values)
    assert credits[left.id].reward == 0.25
    assert credits[left.id].trained
    assert (report.unclean, report.valued) == (1, 1)


def test_a_prefix_is_worth_what_the_siblings_that_share_the_most_of_it_got() -> None:
    siblings = [("ab", 1.0), ("abc", 0.0), ("ax", 0.5), ("y", 0.0)]
    assert prefix_values({"i": "abd"}, siblings) == {"i": 0.5}
    assert prefix_values({"i": "aq"}, siblings) == {"i": 0.5}
    assert prefix_values({"i": "abc"}, siblings) == {"i": 0.5}
    assert prefix_values({"i": "abc"}, siblings, least=1) == {"i": 0.0}
    assert prefix_values({"i": "q"}, siblings) == {}
    assert prefix_values({"i": "q"}, []) == {}


def test_penalties_are_added_to_rewards() -> None:
    rules = CreditRules(estimator="dr_grpo")
    credits, _ = assign(group(1, 1), rules, penalties={"task#0": -1.0})
    assert [credit.reward for credit in credits.values()] == [0.0, 1.0]
    assert [credit.advantage for credit in credits.values()] == [-0.5, 0.5]


def test_the_soft_overlong_penalty_is_dapos() -> None:
    lengths = [0, 16384, 18432, 20480, 99999]
    assert [overlong_penalty(n, 20480, 4096) for n in lengths] == [0, 0, -0.5, -1, -1]
    with pytest.raises(ValueError, match="buffer"):
        overlong_penalty(1, 10, 0)


def test_returns_are_discounted_by_the_calls_that_are_left_on_the_branch() -> None:
    assert discounted(2.0, [0, 1, 2], [2, 2, 2], gamma=0.5).tolist() == [0.5, 1.0, 2.0]
    assert discounted(2.0, [0, 1], [1, 1]).tolist() == [2.0, 2.0]


def test_step_advantages_weigh_episodes_and_not_steps() -> None:
    found = step_advantages({"long": [1.0] * 99, "short": [0.0]})
    assert found["short"].tolist() == [-0.5]
    assert sum(values.mean() for values in found.values()) == pytest.approx(0)
    same = step_advantages({"a": discounted(1, [0, 1], [1, 1]), "b": [0.0]})
    assert same["a"].tolist() == [0.5, 0.5]


def test_gigpo_compares_steps_taken_in_the_same_state() -> None:
    found = anchor_advantages(["s", "s", "lone", "s"], [1.0, 0.0, 9.0, 0.5])
    assert found.tolist() == [0.5, -0.5, 0.0, 0.0]
    scaled = anchor_advantages(["s", "s", "lone"], [1.0, 0.0, 9.0], std=True)
    assert scaled.tolist() == pytest.approx([0.7071058, -0.7071058, 0.0], abs=1e-6)


def test_every_episode_weighs_the_same_however_many_rows_it_has() -> None:
    """939 episodes in ten segments beside 216 whole ones got 67.9 % of a gradient (verl PR 7580)."""
    weights = loss_weights([10] * 10 + [1000], ["many"] * 10 + ["one"])
    assert weights[:10].sum() == pytest.approx(0.5)
    assert weights[10] == pytest.approx(0.5)
    uneven = loss_weights([30, 10], ["a", "a"])
    assert uneven.tolist() == pytest.approx([0.75, 0.25])
    assert np.isfinite(loss_weights([0], ["a"])).all()
