"""How often and how long a failing upstream is asked again."""

from __future__ import annotations

import random
from dataclasses import dataclass

from rollout.gateway.upstream import Transient

__all__ = ["Retry"]


@dataclass(frozen=True)
class Retry:
    """Exponential backoff with jitter, within a budget. All times in seconds."""

    tries: int = 6
    """How often the upstream is asked at most."""
    budget: float = 120.0
    """No new try is begun later than this after the first failure."""
    base: float = 1.0
    """The pause after the first failure; it doubles each time."""
    cap: float = 30.0
    """The longest pause, unless the upstream asks for a longer one."""

    def delay(self, tries: int, failing_for: float, error: Transient) -> float | None:
        """The pause before the next try; None when the budget is spent."""
        backoff = min(self.cap, self.base * 2.0 ** (tries - 1)) * random.uniform(0.5, 1.0)
        pause = max(backoff, error.retry_after)
        spent = tries >= self.tries or failing_for + pause > self.budget
        return None if spent else pause
