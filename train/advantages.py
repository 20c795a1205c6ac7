"""Advantages of every token, from rows that know their episode, their group and their steps.

The definitions are those of `train.credit`; here they meet the rows of a batch, in whatever order these
come. An episode's rows share its reward, and count once in all statistics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollout.types import Record
from train.credit import (
    Estimator,
    Floats,
    anchor_advantages,
    discounted,
    group_advantages,
    step_advantages,
)

__all__ = ["AdvantageRules", "CreditedRow", "token_advantages"]


class AdvantageRules(Record, frozen=True, kw_only=True):
    """How rewards become advantages of tokens."""

    estimator: Estimator = "grpo"
    gamma: float = 1.0
    """Below 1 each step has its own return, and the baseline is `step_advantages`'."""
    gigpo: float = 0.0
    """w of A = A^E + w A^S (arXiv 2505.10978); 0 is off."""


@dataclass(frozen=True)
class CreditedRow:
    """One row; lists run over its steps."""

    group: str
    episode: str
    reward: float
    """The episode's."""
    tokens: int
    """Length of the response."""
    starts: Sequence[int]
    stops: Sequence[int]
    turns: Sequence[int]
    last: Sequence[int]
    anchors: Sequence[str] = ()
    """`train.messages.anchor` of each step, where GiGPO is on."""

    def returns(self, gamma: float) -> Floats:
        """r_t of each step."""
        return discounted(self.reward, self.turns, self.last, gamma)

    def spread(self, steps: Floats) -> Floats:
        """A value for each step as one for each token; 0 between the steps."""
        values = np.zeros(self.tokens)
        for start, stop, value in zip(self.starts, self.stops, steps, strict=True):
            values[start:stop] = value
        return values


def token_advantages(rows: Sequence[CreditedRow], rules: AdvantageRules) -> list[Floats]:
    """Advantages of each row's response tokens, 0 where no step sampled.

    Raises ValueError for a group of one episode: it has no baseline.
    """
    if rules.gigpo:
        told = [
            a + rules.gigpo * b
            for a, b in zip(_episodes(rows, rules), _anchored(rows, rules), strict=True)
        ]
    elif rules.gamma < 1:
        told = _steps(rows, rules)
    else:
        told = _episodes(rows, rules)
    return [row.spread(steps) for row, steps in zip(rows, told, strict=True)]


def _groups(rows: Iterable[CreditedRow]) -> dict[str, dict[str, list[int]]]:
    """Positions of the rows by group and episode."""
    groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for position, row in enumerate(rows):
        groups[row.group][row.episode].append(position)
    return groups


def _episodes(rows: Sequence[CreditedRow], rules: AdvantageRules) -> list[Floats]:
    """The same for all steps of an episode."""
    told: dict[int, Floats] = {}
    for members in _groups(rows).values():
        rewards = [rows[positions[0]].reward for positions in members.values()]
        advantages = group_advantages(rewards, rules.estimator)
        for positions, advantage in zip(members.values(), advantages, strict=True):
            told |= {i: np.full(len(rows[i].starts), advantage) for i in positions}
    return _in_order(told)


def _steps(rows: Sequence[CreditedRow], rules: AdvantageRules) -> list[Floats]:
    """Each step's return against the baseline of its group."""
    told: dict[int, Floats] = {}
    for members in _groups(rows).values():
        returns = {
            name: np.concatenate([rows[i].returns(rules.gamma) for i in positions])
            for name, positions in members.items()
        }
        for name, advantages in step_advantages(returns).items():
            ends = np.cumsum([len(rows[i].starts) for i in members[name]])
            told |= dict(zip(members[name], np.split(advantages, ends[:-1]), strict=True))
    return _in_order(told)


def _anchored(rows: Sequence[CreditedRow], rules: AdvantageRules) -> list[Floats]:
    """Each step against those of its group that were taken in the same state."""
    anchors = [f"{row.group}/{anchor}" for row in rows for anchor in row.anchors]
    returns: NDArray[np.float64] = np.concatenate([row.returns(rules.gamma) for row in rows])
    ends = np.cumsum([len(row.starts) for row in rows])
    return np.split(anchor_advantages(anchors, returns), ends[:-1])


def _in_order(told: Mapping[int, Floats]) -> list[Floats]:
    return [told[position] for position in range(len(told))]
