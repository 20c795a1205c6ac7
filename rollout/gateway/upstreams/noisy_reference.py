"""`--model noisy-reference:p=0.8`: goes wrong with known probability, so that pass^k can be checked.

Attempts are independent: each plays the reference solution with probability p, else one of the task's
wrong solutions, so the expected pass^k is p**k.
"""

from __future__ import annotations

import hashlib
import re
from typing import Self

from rollout.errors import UsageError
from rollout.gateway.upstreams.reference import Reference
from rollout.types import JsonObject, Solution, Task

__all__ = ["NoisyReference"]

EMPTY_HANDED = Solution(name="empty-handed", answer="I could not do this.")


class NoisyReference(Reference):
    """The scripted policy, wrong in a known share of the attempts."""

    model = "noisy-reference"

    def __init__(self, p: float) -> None:
        self.p = p
        """Probability that an attempt plays the reference solution."""
        self.label = f"noisy reference policy, p={p:g} (no LLM)"

    @classmethod
    def from_spec(cls, argument: str, base_url: str) -> Self:
        match = re.fullmatch(r"p=(\d*\.?\d+|\d+\.)", argument)
        if match is None or float(match[1]) > 1:
            given = f"noisy-reference:{argument}" if argument else "noisy-reference"
            raise UsageError(
                f"--model {given}: p must be a number from 0 to 1, "
                "as in --model noisy-reference:p=0.8"
            )
        return cls(float(match[1]))

    def solution(self, task: Task, seed: int) -> Solution:
        if _chance("right", task, seed) < self.p:
            return super().solution(task, seed)
        wrong = task.wrong or (EMPTY_HANDED,)
        return wrong[int(_chance("which", task, seed) * len(wrong))]

    def fingerprint(self) -> JsonObject:
        return super().fingerprint() | {"p": self.p}


def _chance(what: str, task: Task, seed: int) -> float:
    """Uniform in [0, 1), fixed by task and seed."""
    digest = hashlib.sha256(f"{what}\0{task.id}\0{seed}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
