"""Tables on screens of any width."""

import io

import pandas as pd
from rich.console import Console

from reports.table import Column, Table
from reports.terminal import print_table

TABLE = Table(
    name="t",
    title="A table",
    frame=pd.DataFrame(
        {"run": ["react", "[b]codex"], "rate": [0.5, 1.0], "low": [0.25, 0.5], "high": 1.0}
    ),
    columns={
        "run": Column("run"),
        **{"rate": Column("a rate with a long name", "share", low="low", high="high")},
    },
    about="About it.",
    notes=("mind the gap",),
)


def printed(width: int, terminal: bool) -> str:
    file = io.StringIO()
    print_table(Console(file=file, width=width, force_terminal=terminal, no_color=True), TABLE)
    return file.getvalue()


def test_cells_have_their_interval_and_no_markup_is_read() -> None:
    text = printed(80, terminal=False)
    assert "50.0% [25.0, 100.0]" in text
    assert "[b]codex" in text
    assert "note: mind the gap" in text


def test_a_table_that_is_too_wide_is_turned_on_its_side() -> None:
    wide = {f"rate{n}": Column(f"rate {n}", "share", low="low", high="high") for n in range(9)}
    frame = TABLE.frame.assign(**dict.fromkeys(wide, 0.5))
    table = Table(name="t", title="T", frame=frame, columns={"run": Column("run"), **wide})
    file = io.StringIO()
    print_table(Console(file=file, width=80, force_terminal=True, no_color=True), table)
    lines = file.getvalue().splitlines()
    assert any("run" in line and "react" in line and "[b]codex" in line for line in lines)
    assert sum("rate" in line for line in lines) == 9
