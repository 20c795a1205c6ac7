"""Batches of rows or tasks: in an epoch each comes once, in shuffled order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["epoch_batch"]


def epoch_batch(count: int, batch: int, step: int, seed: str) -> list[int]:
    """The positions, out of `count`, that step number `step` takes.

    A batch may reach into the next epoch. `seed` and the epoch's number decide the order in an epoch.
    """
    numbers = []
    for place in range(step * batch, (step + 1) * batch):
        epoch, position = divmod(place, count)
        numbers.append(_shuffled(count, f"{seed}{epoch}")[position])
    return numbers


@lru_cache(maxsize=2)
def _shuffled(count: int, seed: str) -> Sequence[int]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order
