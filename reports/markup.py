"""Tables as HTML that can be read without a script: escaped, with headings, intervals and definitions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from html import escape
from typing import Any

import pandas as pd

from reports.cells import shown
from reports.table import Column, Table

__all__ = ["Links", "paragraph", "table_html"]

Links = Mapping[tuple[str, str], int]
"""(run's label, episode's id) -> the place of the episode in the page's list."""

SEARCHED = 8
"""Tables with more rows get a search field."""

SHORT = 34
"""Characters of a text that is not broken into lines."""

_NUMBERS = ("count", "share", "number", "seconds", "tokens", "money")


def table_html(table: Table, links: Links, told: Collection[str] = ()) -> str:
    """A table with its title, its notes but those `told` before, and what its columns mean."""
    name, columns = escape(table.name), _columns(table)
    grid = "" if table.frame.empty else _grid(table, columns, links)
    meaning = "" if table.frame.empty else _meaning(columns)
    return (
        f'<div class="table"><h3 id="{name}-heading">{escape(table.title)}</h3>'
        f"{paragraph(table.about, 'about')}{grid}{_notes(table, told)}{meaning}</div>"
    )


def _grid(table: Table, columns: Mapping[str, Column], links: Links) -> str:
    name = escape(table.name)
    heads = "".join(_head(column) for column in columns.values())
    rows = "".join(_row(record, columns, links) for record in table.frame.to_dict("records"))
    return (
        f'{_search(table)}<div class="scroll" tabindex="0" role="region" '
        f'aria-labelledby="{name}-heading"><table class="sortable" id="{name}-table">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _columns(table: Table) -> Mapping[str, Column]:
    return table.columns or {str(name): Column(label=str(name)) for name in table.frame.columns}


def _head(column: Column) -> str:
    numeric = ' class="n"' if column.kind in _NUMBERS else ""
    button = f'<button type="button">{escape(column.label)}</button>'
    return f'<th scope="col"{numeric}>{button}</th>'


def _row(record: Mapping[Any, Any], columns: Mapping[str, Column], links: Links) -> str:
    first, *others = (_cell(record, name, column, links) for name, column in columns.items())
    heading = f'<th scope="row"{first.removeprefix("<td").removesuffix("</td>")}</th>'
    return f"<tr>{heading}{''.join(others)}</tr>"


def _cell(record: Mapping[Any, Any], name: str, column: Column, links: Links) -> str:
    value = record.get(name)
    text = written = escape(shown(value, column.kind))
    sort_key = "" if _absent(value) else escape(str(value))
    if column.kind in _NUMBERS:
        return f'<td class="n" data-v="{sort_key}">{text}{_interval(record, value, column)}</td>'
    place = links.get((str(record.get("run")), str(value)))
    if place is not None:
        text = f'<a href="#episode/{place}">{text}</a>'
    kind = "t short" if len(written) <= SHORT else "t"
    return f'<td class="{kind}" data-v="{sort_key}">{text}</td>'


def _interval(record: Mapping[Any, Any], value: Any, column: Column) -> str:
    """The 95 % interval in words, and for a share as a line with a dot."""
    ends = record.get(column.low), record.get(column.high)
    if not (column.low and column.high) or any(map(_absent, (value, *ends))):
        return ""
    low, high = map(float, ends)  # type: ignore[arg-type]
    if column.kind != "share":
        text = f"{shown(low, column.kind)} to {shown(high, column.kind)}"
        return f' <span class="ci">{escape(text)}</span>'
    if not 0 <= low <= high <= 1:
        return f' <span class="ci">{100 * low:+.0f} to {100 * high:+.0f}</span>'
    place = f"--low:{low:.4f};--value:{float(value):.4f};--high:{high:.4f}"
    return (
        f' <span class="ci">{100 * low:.0f}–{100 * high:.0f}</span>'
        f'<span class="range" aria-hidden="true" style="{place}"></span>'
    )


def _search(table: Table) -> str:
    if len(table.frame) <= SEARCHED:
        return ""
    target = f"{escape(table.name)}-table"
    return (
        '<label class="find">Search'
        f'<input type="search" data-search="{target}" autocomplete="off"></label>'
    )


def _meaning(columns: Mapping[str, Column]) -> str:
    helps = [(column.label, column.help) for column in columns.values() if column.help]
    if not helps:
        return ""
    items = "".join(f"<dt>{escape(label)}</dt><dd>{escape(text)}</dd>" for label, text in helps)
    return f'<details class="meaning"><summary>What the columns mean</summary><dl>{items}</dl></details>'


def _notes(table: Table, told: Collection[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in table.notes if note not in told)
    return f'<ul class="notes">{items}</ul>' if items else ""


def paragraph(text: str, kind: str) -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if text else ""


def _absent(value: Any) -> bool:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return True
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))
