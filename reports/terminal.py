"""A table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box, table
from rich.console import Console

from reports.cells import cells
from reports.table import Table
from suites.command.screen import say, shown

__all__ = ["print_table", "print_verdict"]

PIPED_WIDTH = 400
"""Columns of what is not a terminal: a file is never cut."""


def print_table(console: Console, what: Table) -> None:
    """The table, what it is about, and its notes. One that is too wide is turned on its side."""
    if not console.is_terminal:
        console = Console(file=console.file, width=max(console.width, PIPED_WIDTH), soft_wrap=True)
    console.print()
    say(console, what.title, style="bold")
    if what.about:
        say(console, what.about)
    head = [column.label for column in what.columns.values()]
    rows = list(cells(what))
    is_text = [column.kind == "text" for column in what.columns.values()]
    if rows and _width(head, rows) > console.width >= _width(*_turned(head, rows)):
        head, rows = _turned(head, rows)
        is_text = [True] + [False] * len(rows[0][1:])
    console.print(_grid(head, rows, is_text))
    for note in what.notes:
        say(console, f"note: {note}")


def print_verdict(console: Console, lines: Sequence[str]) -> None:
    """What the numbers come to."""
    for line in lines:
        say(console, line)


def _grid(
    head: Sequence[str], rows: Sequence[Sequence[str]], is_text: Sequence[bool]
) -> table.Table:
    grid = table.Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for label, text in zip(head, is_text, strict=True):
        grid.add_column(shown(label), justify="left" if text else "right", overflow="fold")
    for row in rows:
        grid.add_row(*map(shown, row))
    return grid


def _turned(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Columns as rows: for few rows of many figures."""
    first, *others = ([label, *values] for label, *values in zip(head, *rows, strict=True))
    return first, others


def _width(head: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    columns = zip(head, *rows, strict=True)
    return sum(max(map(len, column)) + 2 for column in columns)
