"""Tables as files: CSV and Parquet with every column, Markdown as people see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from reports.cells import cells
from reports.table import Table
from rollout.errors import usable

__all__ = ["markdown", "write_tables"]


def write_tables(tables: Sequence[Table], folder: Path) -> list[Path]:
    """Write each table as NAME.csv, NAME.parquet and NAME.md. Raises UsageError where that can't be."""
    with usable(folder, "choose another folder with --out"):
        folder.mkdir(parents=True, exist_ok=True)
    return [
        _write(table, folder / f"{table.name}.{kind}", kind) for table in tables for kind in _AS
    ]


def markdown(table: Table) -> str:
    """The table with its title, what it is about, and its notes."""
    head = [column.label for column in table.columns.values()]
    rule = [":--" if column.kind == "text" else "--:" for column in table.columns.values()]
    lines = [_line(row) for row in (head, rule, *cells(table))]
    notes = [f"- {note}" for note in table.notes]
    parts = [f"# {table.title}", table.about, "\n".join(lines), "\n".join(notes)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _write(table: Table, path: Path, kind: str) -> Path:
    with usable(path, "choose another folder with --out"):
        _AS[kind](table, path)
    return path


def _line(row: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", r"\|").split()) for cell in row) + " |"


_AS: dict[str, Callable[[Table, Path], object]] = {
    "csv": lambda table, path: table.frame.to_csv(path, index=False),
    "parquet": lambda table, path: table.frame.to_parquet(path, index=False),
    "md": lambda table, path: path.write_text(markdown(table), encoding="utf-8"),
}
