"""A table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box, table
from rich.console import Console

from reports.cells import cells
from reports.table import Table
from suites.screen import say, shown

__all__ = ["print_table", "print_verdict"]


def print_table(console: Console, what: Table) -> None:
    """The table, what it is about, and its notes. Piped into a file it is never cut."""
    if not console.is_terminal:
        console = Console(file=console.file, width=max(console.width, 400), soft_wrap=True)
    console.print()
    say(console, what.title, style="bold")
    if what.about:
        say(console, what.about)
    grid = table.Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in what.columns.values():
        is_text = column.kind == "text"
        grid.add_column(column.label, justify="left" if is_text else "right", overflow="fold")
    for row in cells(what):
        grid.add_row(*map(shown, row))
    console.print(grid)
    for note in what.notes:
        say(console, f"note: {note}")


def print_verdict(console: Console, lines: Sequence[str]) -> None:
    """What the numbers come to."""
    for line in lines:
        say(console, line)
