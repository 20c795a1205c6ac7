"""Adding up waits that overlap: seconds during which at least one of them was open."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Meter"]


class Meter:
    """A union of intervals. Waits that are still open count until now, or until `freeze()`."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: list[float] = []
        self._merged: list[tuple[float, float]] = []
        self._frozen = False

    def begin(self) -> float:
        """Open a wait; the value goes to `end` or `drop`."""
        start = self._now()
        self._open.append(start)
        return start

    def end(self, start: float) -> None:
        """Close a wait and count it."""
        if self.drop(start):
            self._add(start, self._now())

    def drop(self, start: float) -> bool:
        """Close a wait without counting it. False once the meter is frozen."""
        if self._frozen:
            return False
        self._open.remove(start)
        return True

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time inside."""
        start = self.begin()
        try:
            yield
        finally:
            self.end(start)

    @contextmanager
    def endless(self) -> Iterator[None]:
        """Count the time inside only if it has not ended when the meter is frozen."""
        start = self.begin()
        try:
            yield
        finally:
            self.drop(start)

    def freeze(self, now: float) -> None:
        """Count what is open until `now`, and nothing that comes later."""
        for start in self._open:
            self._add(start, now)
        self._open.clear()
        self._frozen = True

    @property
    def seconds(self) -> float:
        closed = sum(end - start for start, end in self._merged)
        if self._frozen or not self._open:
            return closed
        now, first = self._now(), min(self._open)
        covered = sum(end - max(start, first) for start, end in self._merged if end > first)
        return closed - covered + (now - first)

    def _add(self, start: float, end: float) -> None:
        """Intervals end in order, so merging with the latest ones keeps all of them disjoint."""
        while self._merged and self._merged[-1][1] >= start:
            start = min(start, self._merged.pop()[0])
        self._merged.append((start, end))
