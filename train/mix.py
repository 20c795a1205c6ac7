"""Which harnesses a policy is trained in, and how often each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rollout.errors import UsageError

__all__ = ["Entrant", "mix_text", "parse_mix", "spread", "with_guests"]


@dataclass(frozen=True)
class Entrant:
    """A harness under one tool surface."""

    harness: str
    """`NAME[:PRESET]`."""
    tools: str = ""
    """The surface; the harness's first where it is empty."""
    weight: float = 1.0

    @property
    def name(self) -> str:
        """For metrics and folders."""
        return f"{self.harness}/{self.tools}" if self.tools else self.harness

    @property
    def arguments(self) -> list[str]:
        """As a suite's command line takes them."""
        surface = ["--tools", self.tools] if self.tools else []
        return ["--harness", self.harness, *surface]


def parse_mix(text: str, tools: str = "") -> tuple[Entrant, ...]:
    """`react,codex` or `react:0.7,codex:0.3`; `react/mcp` names a surface. Raises UsageError.

    `tools` is the surface of those that name none.
    """
    entrants = tuple(_entrant(part.strip(), tools) for part in text.split(","))
    names = [one.name for one in entrants]
    if len(set(names)) < len(names):
        raise UsageError(f"--harness {text}: names a harness twice; give it one weight")
    return entrants


def mix_text(entrants: Sequence[Entrant]) -> str:
    """As `parse_mix` reads it. Weights of guests are not kept: nobody draws them."""
    weights = [one.weight or 1.0 for one in entrants]
    return ",".join(
        one.name if weight == 1 else f"{one.name}:{weight:g}"
        for one, weight in zip(entrants, weights, strict=True)
    )


def _entrant(text: str, tools: str) -> Entrant:
    head, _, last = text.rpartition(":")
    try:
        weight = float(last) if head else 1.0
    except ValueError:
        head, weight = text, 1.0
    harness, _, surface = (head or text).partition("/")
    if not harness.partition(":")[0] or not 0 < weight < float("inf"):
        raise UsageError(f"--harness: {text!r} is not NAME[/TOOLS][:WEIGHT] with a positive weight")
    return Entrant(harness, surface or tools, weight)


def with_guests(entrants: Sequence[Entrant], guests: Sequence[Entrant]) -> tuple[Entrant, ...]:
    """Those that are trained in, then those that are only evaluated in: their weight is 0."""
    names = {one.name for one in entrants}
    return (*entrants, *(replace(one, weight=0.0) for one in guests if one.name not in names))


def spread(entrants: Sequence[Entrant], count: int, seed: str) -> list[Entrant]:
    """A harness for each of `count` tasks: as the weights say, as nearly as whole numbers can.

    What is left over after rounding down is drawn by the fractions, so that over many steps each has its
    share.
    """
    dice = random.Random(seed)
    total = sum(one.weight for one in entrants)
    shares = [count * one.weight / total for one in entrants]
    chosen = [one for one, share in zip(entrants, shares, strict=True) for _ in range(int(share))]
    fractions = [share - int(share) for share in shares]
    if missing := count - len(chosen):
        chosen += dice.choices(entrants, weights=fractions, k=missing)
    dice.shuffle(chosen)
    return chosen
