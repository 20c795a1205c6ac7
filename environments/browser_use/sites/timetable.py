"""The flights of the travel site: made up, but the same every time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from random import Random

__all__ = ["Flight", "flights"]

A_DAY = 6
WEEKDAYS = (0, -500, -800, 0, 1500, 900, 1200)
"""Cents on top of the base price, from Monday on."""


@dataclass(frozen=True)
class Flight:
    """One flight on one day. Times are minutes after midnight, prices cents a person."""

    number: str
    departs: int
    arrives: int
    stops: int
    price: int

    @property
    def minutes(self) -> int:
        return self.arrives - self.departs


def flights(origin: str, target: str, day: date) -> list[Flight]:
    """The flights between two airports on a day, by departure."""
    random = Random(f"{origin} {target}")
    short = random.randrange(95, 190, 5)
    found = []
    for n in range(A_DAY):
        stops = random.choice((0, 0, 1)) if n else 0
        departs = 360 + 150 * n + random.randrange(0, 90, 5)
        minutes = short + random.randrange(0, 20, 5) + stops * random.randrange(75, 160, 5)
        base = random.randrange(6900, 16900, 100) - stops * 1500
        number = f"{random.choice(('AW', 'BN', 'CQ'))} {random.randrange(110, 990)}"
        price = base + WEEKDAYS[day.weekday()] + day.day * (n + 3) % 11 * 100
        found.append(Flight(number, departs, departs + minutes, stops, price))
    return found
