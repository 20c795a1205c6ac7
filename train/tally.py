"""What episodes came to, as sums that add up over steps' parts and over processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rollout.types import Episode, Outcome

__all__ = ["Tally"]


class Tally:
    """Means and counts of a step, under the names that metrics have.

    `reward`, `passed` (means over graded episodes), `episode/calls`, `/tool_calls`, `/tokens`, `/seconds`
    (means over all), `dropped/CAUSE` (how many were not graded), and whatever else is counted.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._means: dict[str, tuple[float, int]] = {}

    def add(self, episodes: Iterable[Episode], harness: str = "") -> None:
        """Count in episodes; `harness` is for metrics of its own: `reward/HARNESS`."""
        end = f"/{harness}" if harness else ""
        for one in episodes:
            if not one.outcome.graded:
                self.counts[f"dropped/{one.cause or one.outcome}{end}"] += 1
            elif one.grade is not None:
                self._mean(f"reward{end}", one.grade.score)
                self._mean(f"passed{end}", one.outcome is Outcome.PASSED)
            self._mean(f"episode/calls{end}", one.calls)
            self._mean(f"episode/tool_calls{end}", one.tool_calls)
            self._mean(f"episode/tokens{end}", one.usage.completion)
            self._mean(f"episode/seconds{end}", one.timing.total)

    def merge(self, other: Tally) -> None:
        """Count in what another one has."""
        self.counts.update(other.counts)
        for name, (total, number) in other._means.items():
            self._mean(name, total, number)

    def values(self) -> dict[str, float]:
        """Metrics by name."""
        means = {name: total / number for name, (total, number) in self._means.items()}
        return means | dict(sorted(self.counts.items()))

    def _mean(self, name: str, total: float, number: int = 1) -> None:
        before, counted = self._means.get(name, (0.0, 0))
        self._means[name] = before + total, counted + number
