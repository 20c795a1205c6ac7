"""Who gets which credit: returns of steps, advantages of episodes, weights of rows.

Pure functions of small records; all statistics are over episodes, never over rows. An episode that came
apart into ten samples counts once in its group's mean, and once in the loss.

A group is the attempts at one task. What is not clean (an infrastructure error, a site that blocked the
agent, a judge that failed) has no reward of its own; one named policy says what becomes of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollout.types import Episode, Outcome, Record

__all__ = [
    "Credit",
    "CreditReport",
    "CreditRules",
    "anchor_advantages",
    "assign",
    "discounted",
    "group_advantages",
    "loss_weights",
    "overlong_penalty",
    "prefix_values",
    "reward_of",
    "step_advantages",
    "world_values",
]

Floats: TypeAlias = NDArray[np.float64]

Estimator: TypeAlias = Literal["grpo", "dr_grpo", "rloo"]

EPSILON = 1e-6
"""Added to the standard deviation; verl's value."""


class CreditRules(Record, frozen=True, kw_only=True):
    """How a group's rewards become advantages."""

    estimator: Estimator = "grpo"
    reward: Literal["score", "passed"] = "score"
    """The grade's score in [0, 1], or 1 and 0 for passed and failed."""
    unclean: Literal["drop", "mask", "score"] = "drop"
    """What becomes of an attempt that has no grade, and the bias of that.

    `drop`: it counts nowhere. Tasks that break often, mostly hard ones, lose attempts.
    `mask`: its rows are not trained, but a reward of 0 enters the baseline. That lifts its siblings.
    `score`: it is trained with reward 0. Right steps are punished for a fault that was not theirs."""
    timeouts: Literal["score", "drop"] = "score"
    """Episodes whose policy used up the wall clock. `score`: they failed, with reward 0; otherwise
    nothing would teach the policy not to stall. `drop`: they count nowhere, as in DAPO's overlong
    filtering."""
    zero_variance: Literal["keep", "filter"] = "keep"
    """Groups whose rewards are all equal, hence with advantages of 0: `keep` leaves them in the batch,
    `filter` drops them, as DAPO's dynamic sampling does."""


class Credit(Record, frozen=True, kw_only=True):
    """What one episode is worth."""

    reward: float
    advantage: float
    trained: bool = True
    """False for an episode that only counts in its group's baseline."""


@dataclass
class CreditReport:
    """Counts of episodes and groups."""

    episodes: int = 0
    clean: int = 0
    unclean: int = 0
    """Without a grade of their own; treated as `CreditRules.unclean` says."""
    valued: int = 0
    """Of the unclean ones, those to which the caller gave a value."""
    groups: int = 0
    too_small: int = 0
    """Groups with fewer than two survivors: no baseline, dropped."""
    zero_variance: int = 0
    """Groups whose rewards are all equal; kept or dropped, as the rules say."""
    trained: int = 0
    """Episodes with credit, in groups that were kept."""


RULES = CreditRules()


def reward_of(episode: Episode, rules: CreditRules = RULES) -> float | None:
    """The reward of a clean episode, None for one that is not clean.

    An episode that ran into its wall clock failed, whatever the grade of what it left behind.
    """
    if not episode.outcome.graded or episode.grade is None:
        return None
    if episode.timed_out:
        return 0.0 if rules.timeouts == "score" else None
    if rules.reward == "passed":
        return float(episode.outcome is Outcome.PASSED)
    return episode.grade.score


def assign(
    episodes: Iterable[Episode],
    rules: CreditRules = RULES,
    *,
    values: Mapping[str, float] | None = None,
    penalties: Mapping[str, float] | None = None,
) -> tuple[dict[str, Credit], CreditReport]:
    """Credit by episode id, for the episodes that count.

    `episodes` must hold one try of each attempt. `values` are rewards for unclean episodes (see
    `world_values`, `prefix_values`); `penalties` are added to rewards (see `overlong_penalty`). Both are
    by episode id.
    """
    values, penalties = values or {}, penalties or {}
    report = CreditReport()
    groups: dict[str, dict[str, tuple[float, bool]]] = defaultdict(dict)
    for episode in episodes:
        members = groups[episode.task_id]
        report.episodes += 1
        counted = _counted(episode, rules, values, report)
        if counted is not None:
            reward, trained = counted
            members[episode.id] = reward + penalties.get(episode.id, 0.0), trained
    credits: dict[str, Credit] = {}
    for members in groups.values():
        credits |= _group(members, rules, report)
    report.groups = len(groups)
    report.trained = sum(credit.trained for credit in credits.values())
    return credits, report


def _counted(
    episode: Episode, rules: CreditRules, values: Mapping[str, float], report: CreditReport
) -> tuple[float, bool] | None:
    """An episode's reward and whether it is trained; None when it does not count."""
    reward = reward_of(episode, rules)
    if reward is not None:
        report.clean += 1
        return reward, True
    report.unclean += 1
    if episode.outcome is Outcome.SKIPPED:
        return None
    if episode.id in values:
        report.valued += 1
        return values[episode.id], True
    return None if rules.unclean == "drop" else (0.0, rules.unclean == "score")


def _group(
    members: Mapping[str, tuple[float, bool]], rules: CreditRules, report: CreditReport
) -> dict[str, Credit]:
    """A group of one has no baseline and is dropped. verl would take its raw reward for an advantage."""
    if len(members) < 2:
        report.too_small += 1
        return {}
    rewards = [reward for reward, _ in members.values()]
    if max(rewards) == min(rewards):
        report.zero_variance += 1
        if rules.zero_variance == "filter":
            return {}
    advantages = group_advantages(rewards, rules.estimator)
    return {
        name: Credit(reward=reward, advantage=float(advantage), trained=trained)
        for (name, (reward, trained)), advantage in zip(members.items(), advantages, strict=True)
    }


def group_advantages(rewards: ArrayLike, estimator: Estimator = "grpo") -> Floats:
    """Advantages of a group's episodes; they sum to zero.

    `grpo`: (R - mean) / (std + 1e-6), std with n - 1: verl/trainer/ppo/core_algos.py,
    `compute_grpo_outcome_advantage`. `dr_grpo`: R - mean (arXiv 2503.20783), the same function with
    `norm_adv_by_std_in_grpo=False`. `rloo`: R - mean of the others (arXiv 2402.14740), the same file's
    `compute_rloo_outcome_advantage`. Raises ValueError for fewer than two rewards.
    """
    values = np.asarray(rewards, np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError("a group needs two rewards or more: one alone has no baseline")
    # Equal rewards have advantages of exactly 0, not of their rounding errors.
    centred = np.zeros_like(values) if np.ptp(values) == 0 else values - values.mean()
    if estimator == "grpo":
        return np.asarray(centred / (values.std(ddof=1) + EPSILON))
    if estimator == "rloo":
        return np.asarray(centred * len(values) / (len(values) - 1))
    return centred


def discounted(reward: float, turns: ArrayLike, last: ArrayLike, gamma: float = 1.0) -> Floats:
    """r_t = gamma^(T - t) r_T: the return of each step.

    t is `Step.turn`, T is `Step.last`: the last call on the step's own branch, not of the episode. A
    sub-agent's last call thus gets the whole reward, as does the last one before a compaction. It is a
    return already: do not discount it again.
    """
    ahead = np.asarray(last, np.float64) - np.asarray(turns, np.float64)
    return np.asarray(reward * np.power(gamma, ahead))


def step_advantages(returns: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Advantages of the steps of a group's episodes where gamma is below 1: r_t - baseline.

    The baseline is the mean over episodes of their mean step return, so a long episode counts once. With
    gamma = 1 this is `dr_grpo`. The episodes' mean advantages sum to zero.
    """
    arrays = {name: np.asarray(values, np.float64) for name, values in returns.items()}
    if len(arrays) < 2:
        raise ValueError("a group needs two episodes or more: one alone has no baseline")
    baseline = np.mean([values.mean() for values in arrays.values()])
    return {name: np.asarray(values - baseline) for name, values in arrays.items()}


def anchor_advantages(
    anchors: Sequence[str], returns: ArrayLike, *, std: bool = False, epsilon: float = EPSILON
) -> Floats:
    """GiGPO's step advantage A^S: each step against the others of its group taken in the same state.

    `anchors` are the steps' states (`train.messages.anchor`), prefixed by their group where several are
    passed. A state that occurs once gets 0. Add it to the episode's advantage: A = A^E + w A^S, w = 1
    (arXiv 2505.10978). As verl-agent's gigpo/core_gigpo.py does it with `mode="mean_norm"` (`std=True`:
    "mean_std_norm"); but its A^E is by default taken over step rows, here over episodes.
    """
    values = np.asarray(returns, np.float64)
    _, where = np.unique(np.asarray(anchors), return_inverse=True)
    counts = np.bincount(where)
    centred = values - (np.bincount(where, values) / counts)[where]
    centred[counts[where] == 1] = 0.0
    if std:
        spread = np.bincount(where, centred**2) / np.maximum(counts - 1, 1)
        centred /= np.sqrt(spread)[where] + epsilon
    return np.asarray(centred)


def loss_weights(tokens: ArrayLike, episodes: Sequence[str]) -> Floats:
    """Weight of each row's mean token loss, so that every episode weighs the same. They sum to 1.

    Within an episode all trained tokens weigh the same. verl's `agg_loss` (core_algos.py) counts rows or
    tokens: there an episode of ten segments outweighs one of a single segment tenfold. This is what
    agent-lightning's `per_rollout_mean` (agentlightning/verl/per_rollout_loss.py) does.
    """
    counts = np.asarray(tokens, np.float64)
    names, where = np.unique(np.asarray(episodes), return_inverse=True)
    totals = np.bincount(where, counts)
    return np.asarray(counts / np.maximum(totals, 1)[where] / max(len(names), 1))


def overlong_penalty(tokens: float, limit: int, buffer: int) -> float:
    """DAPO's soft overlong punishment (arXiv 2503.14476, eq. 13), in [-1, 0].

    0 up to `limit - buffer` tokens, then linear down to -1 at `limit`. verl's reward manager `dapo` goes
    on falling below -1, and multiplies by a factor. Raises ValueError for a buffer outside 1..limit.
    """
    if buffer <= 0 or limit < buffer:
        raise ValueError(f"the buffer must be in 1..limit ({limit}), not {buffer}")
    return float(np.clip((limit - buffer - tokens) / buffer, -1.0, 0.0))


def world_values(episodes: Iterable[Episode]) -> dict[str, float]:
    """Values of unclean episodes whose world was graded all the same: that grade.

    Biased low: the agent is judged as if it had chosen to stop where it was interrupted. A good beginning
    of a long task is punished, the more so the earlier the fault came. Only where nothing was left to do
    is the value unbiased.
    """
    return {
        episode.id: episode.grade.score
        for episode in episodes
        if not episode.outcome.graded and episode.grade is not None
    }


def prefix_values(
    interrupted: Mapping[str, Sequence[str]],
    siblings: Sequence[tuple[Sequence[str], float]],
    *,
    least: int = 2,
) -> dict[str, float]:
    """Values of a group's interrupted episodes: the mean reward of siblings that began in the same way.

    An episode is given as its states in order (`train.messages.anchor`), a sibling also with its reward.
    The prefix is the longest beginning that the episode shares with at least `least` siblings; without
    one it gets no value. This is a Monte Carlo estimate of the prefix's value, as in VinePPO and RTMC,
    from few samples: unbiased for the prefix, though not for what this episode would have done next; of
    high variance; and near the group's mean, so an advantage near 0, where only the first state is
    shared.
    """
    values = {}
    for name, states in interrupted.items():
        shared = [_shared(states, theirs) for theirs, _ in siblings]
        reach = Counter(shared)
        deep = next((n for n in range(max(shared, default=0), 0, -1) if _at(reach, n) >= least), 0)
        if deep:
            rewards = [reward for n, (_, reward) in zip(shared, siblings, strict=True) if n >= deep]
            values[name] = float(np.mean(rewards))
    return values


def _at(reach: Counter[int], depth: int) -> int:
    return sum(count for shared, count in reach.items() if shared >= depth)


def _shared(states: Sequence[str], others: Sequence[str]) -> int:
    pairs = zip(states, others, strict=False)
    different = (i for i, (mine, theirs) in enumerate(pairs) if mine != theirs)
    return next(different, min(len(states), len(others)))
