"""What every command line here shares: complaints of one line, and types of numbers."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import NoReturn

from rollout.errors import UsageError

__all__ = ["Parser", "bounded", "positive"]


class Parser(argparse.ArgumentParser):
    """Complains with one line, as everything here does."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (--help shows the options)")


def bounded(
    kind: type[int] | type[float], low: float, high: float = math.inf
) -> Callable[[str], float]:
    """A type of argument: a finite number from `low` to `high`."""

    def convert(text: str) -> float:
        value = kind(text)
        if not (low <= value <= high and math.isfinite(value)):
            limits = f"at least {low}" if high == math.inf else f"from {low} to {high}"
            raise argparse.ArgumentTypeError(f"must be {limits}, not {text}")
        return value

    convert.__name__ = "number"
    return convert


def positive(kind: type[int] | type[float]) -> type[int] | type[float]:
    """A type of argument: a number greater than 0."""

    def convert(text: str) -> float:
        value = kind(text)
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"must be greater than 0 and finite, not {text}")
        return value

    convert.__name__ = kind.__name__
    return convert  # type: ignore[return-value]
