"""How values are written, in terminals and in Markdown alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

from reports.table import Column, Kind, Table

__all__ = ["DASH", "cells", "shown"]

DASH = "-"


def shown(value: Any, kind: Kind) -> str:
    """A value as people read it; a dash for NaN and None."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NA:
        return DASH
    if isinstance(value, float) and math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return _SHOWN[kind](value)


def cells(table: Table) -> Iterator[list[str]]:
    """The rows of what people see, with each interval in its value's cell."""
    for _, row in table.frame.iterrows():
        yield [_cell(row, name, column) for name, column in table.columns.items()]


def _cell(row: pd.Series[Any], name: str, column: Column) -> str:
    text = shown(row[name], column.kind)
    if not column.low or text == DASH:
        return text
    ends = [shown(row[end], column.kind).removesuffix("%") for end in (column.low, column.high)]
    return text if DASH in ends else f"{text} [{ends[0]}, {ends[1]}]"


def _number(value: Any) -> str:
    if 0 < abs(value) < 0.001:
        return f"{value:.0e}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.1f}"


def _tokens(value: Any) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if unit == 'k' else size):.1f}{unit}"
    return f"{value:.0f}"


def _money(value: Any) -> str:
    return f"${value:.4f}" if 0 < abs(value) < 0.1 else f"${value:,.2f}"


_SHOWN: dict[Kind, Callable[[Any], str]] = {
    "text": str,
    "count": lambda value: f"{value:,.0f}",
    "share": lambda value: f"{100 * value:.1f}%",
    "number": _number,
    "seconds": lambda value: f"{value:.1f} s" if value < 100 else f"{value:,.0f} s",
    "tokens": _tokens,
    "money": _money,
    "flag": lambda value: "yes" if value else "no",
}
