"""Which harnesses a policy is trained in, and how often each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rollout.errors import UsageError
from suites.command.options import Forced

__all__ = ["HarnessSpec", "draw", "format_mix", "parse_mix", "with_eval_only"]


@dataclass(frozen=True)
class HarnessSpec:
    """A harness under one tool surface."""

    harness: str
    """`NAME[:PRESET]`."""
    tools: str = ""
    """The surface; the harness's first where it is empty."""
    weight: float = 1.0

    @property
    def name(self) -> str:
        """For metrics and messages."""
        return f"{self.harness}/{self.tools}" if self.tools else self.harness

    @property
    def options(self) -> Forced:
        """The options of a suite that select it."""
        chosen: Forced = {"harness": self.harness}
        if self.tools:
            chosen["tools"] = self.tools
        return chosen

    @property
    def folder(self) -> str:
        """The name in one part of a path."""
        return self.name.replace("/", "-").replace(":", "-")


def parse_mix(text: str, tools: str = "") -> tuple[HarnessSpec, ...]:
    """`react,codex` or `react:0.7,codex:0.3`; `react/mcp` names a surface. Raises UsageError.

    `tools` is the surface of those that name none.
    """
    specs = tuple(_spec(part.strip(), tools) for part in text.split(","))
    names = [one.name for one in specs]
    if len(set(names)) < len(names):
        raise UsageError(f"--harness {text}: names a harness twice; give it one weight")
    return specs


def format_mix(specs: Sequence[HarnessSpec]) -> str:
    """As `parse_mix` reads it. Weights of 0 (`with_eval_only`) become 1: verl never draws from these."""
    weights = [one.weight or 1.0 for one in specs]
    return ",".join(
        one.name if weight == 1 else f"{one.name}:{weight:g}"
        for one, weight in zip(specs, weights, strict=True)
    )


def _spec(text: str, tools: str) -> HarnessSpec:
    head, _, last = text.rpartition(":")
    try:
        weight = float(last) if head else 1.0
    except ValueError:
        head, weight = text, 1.0
    harness, _, surface = (head or text).partition("/")
    if not harness.partition(":")[0] or not 0 < weight < float("inf"):
        raise UsageError(f"--harness: {text!r} is not NAME[/TOOLS][:WEIGHT] with a positive weight")
    return HarnessSpec(harness, surface or tools, weight)


def with_eval_only(
    specs: Sequence[HarnessSpec], others: Sequence[HarnessSpec]
) -> tuple[HarnessSpec, ...]:
    """Those that are trained in, then those that are only evaluated in: their weight is 0."""
    names = {one.name for one in specs}
    return (*specs, *(replace(one, weight=0.0) for one in others if one.name not in names))


def draw(specs: Sequence[HarnessSpec], count: int, seed: str) -> list[HarnessSpec]:
    """A harness for each of `count` tasks: as the weights say, as nearly as whole numbers can.

    What is left over after rounding down is drawn by the fractions, so that over many steps each has its
    share.
    """
    dice = random.Random(seed)
    total = sum(one.weight for one in specs)
    shares = [count * one.weight / total for one in specs]
    chosen = [one for one, share in zip(specs, shares, strict=True) for _ in range(int(share))]
    fractions = [share - int(share) for share in shares]
    if missing := count - len(chosen):
        chosen += dice.choices(specs, weights=fractions, k=missing)
    dice.shuffle(chosen)
    return chosen
