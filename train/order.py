"""The order in which rows or tasks are taken: each once, shuffled, before any comes again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["taken"]


def taken(count: int, batch: int, step: int, seed: str) -> list[int]:
    """What step number `step` takes of `count`; `seed` and the epoch's number decide its order."""
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
