"""What drills are made of: names, numbers and days. The splits `train` and `held-out` share none."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import TypeAlias, TypeVar

__all__ = ["DEPARTMENTS", "SPLITS", "Office"]

SPLITS = ("train", "held-out")
HELD_OUT = 0.2
"""The share of names, numbers and days that is held out."""

DEPARTMENTS = ("sales", "legal", "finance", "design", "support", "research", "security", "travel")
SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
FIRST_DAY = date(2026, 3, 3)
DAYS = 300

T = TypeVar("T")
Draw: TypeAlias = Callable[[], T]


@dataclass
class Office:
    """Draws from one split; nothing is drawn twice."""

    split: str
    dice: random.Random

    def __post_init__(self) -> None:
        self._drawn: set[object] = set()

    def name(self) -> str:
        """Two syllables, e.g. `Tami`."""
        first, second = self._new(lambda: self._mine(len(SYLLABLES) ** 2), _syllables)
        return first.capitalize() + second

    def number(self) -> int:
        """Of three digits: an id's, or an amount."""
        return self._new(lambda: 100 + self._mine(900), int)

    def day(self) -> str:
        """YYYY-MM-DD."""
        return self._new(lambda: self._mine(DAYS), lambda n: str(FIRST_DAY + timedelta(n)))

    def _mine(self, count: int) -> int:
        """A number below `count` that belongs to this split."""
        while ((n := self.dice.randrange(count)) in _held_out(count)) == (self.split == "train"):
            pass
        return n

    def _new(self, draw: Draw[int], make: Callable[[int], T]) -> T:
        while (made := make(draw())) in self._drawn:
            pass
        self._drawn.add(made)
        return made


@cache
def _held_out(count: int) -> frozenset[int]:
    """Drawn at random: every digit and every syllable is in both splits."""
    return frozenset(random.Random(count).sample(range(count), round(HELD_OUT * count)))


def _syllables(number: int) -> tuple[str, str]:
    first, second = divmod(number, len(SYLLABLES))
    return SYLLABLES[first], SYLLABLES[second]
