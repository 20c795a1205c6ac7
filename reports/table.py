"""The contract between what is computed and what is shown: a table that knows what its columns mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

__all__ = ["Column", "Kind", "Table"]

Kind = Literal["text", "count", "share", "number", "seconds", "tokens", "money", "flag"]
"""How a value is written. A `share` lies in [0, 1] and is shown in per cent; NaN is shown as a dash."""


@dataclass(frozen=True)
class Column:
    """One column of a table, as people read it."""

    label: str
    kind: Kind = "text"
    help: str = ""
    """What it is and how it is computed, with the source of a formula."""
    low: str = ""
    """Name of the column with the lower end of its 95 % interval, which is then shown beside it."""
    high: str = ""


@dataclass(frozen=True)
class Table:
    """A data frame, and what is needed to show it in a terminal, as Markdown, CSV or HTML."""

    name: str
    """File name and anchor: `cross-harness`."""
    title: str
    frame: pd.DataFrame
    columns: Mapping[str, Column] = field(default_factory=dict)
    """The columns that people see, in order; the frame may have more, which files keep."""
    about: str = ""
    """One paragraph: what the rows are, what is counted, what is left out."""
    notes: tuple[str, ...] = ()
    """What a reader must know of these very numbers: runs that can't be compared, small samples."""
