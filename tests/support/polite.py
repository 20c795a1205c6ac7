"""A protocol from outside, as the documentation has it."""

from __future__ import annotations

from rollout.judge import Judge, Verdict
from rollout.protocol import Evidence, Protocol


class Polite(Protocol):
    """Whether the answer is polite."""

    def __init__(self, *, words: int = 1) -> None:
        self._words = words

    async def verdict(self, evidence: Evidence, judge: Judge) -> Verdict:
        question = f"Is this polite, in {self._words} words? {evidence.answer}"
        return await judge.ask([{"role": "user", "content": question}])
