"""Every table of the report by its name, each computed when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from reports import behaviour_tables, comparability, cost, cross_harness, reliability
from reports.cost import Price
from reports.load import Runs
from reports.measured import Measured, measured
from reports.table import Table

__all__ = ["TABLES", "Report"]


@dataclass(frozen=True)
class Report:
    """What the tables are made from."""

    runs: Runs
    prices: Sequence[Price] = field(default_factory=cost.read_prices)
    with_judge: Callable[[Measured], Measured] = lambda found: found
    """Adds what a judge said."""

    @cached_property
    def measured(self) -> Measured:
        return self.with_judge(measured(self.runs))

    def table(self, name: str) -> Table:
        """One of `TABLES`."""
        return TABLES[name][1](self)

    def tables(self) -> list[Table]:
        """All of them, in order."""
        return [make(self) for _, make in TABLES.values()]


TABLES: dict[str, tuple[str, Callable[[Report], Table]]] = {
    "cross-harness": (
        "pass@1, pass@k and pass^k of each model in each harness",
        lambda report: cross_harness.cross_harness(report.runs),
    ),
    "paired": (
        "two runs at a time on the same tasks: difference, test, how many more tasks to settle it",
        lambda report: reliability.paired(report.runs),
    ),
    "comparability": (
        "what differs between the runs beside harness and model",
        lambda report: comparability.comparability(report.runs),
    ),
    "pass-at-k": (
        "pass@k and pass^k for each k",
        lambda report: reliability.curves(report.runs),
    ),
    "tasks": (
        "each task's share of passed attempts",
        lambda report: reliability.tasks(report.runs),
    ),
    "outcomes": (
        "how attempts ended, by cause",
        lambda report: reliability.outcomes(report.runs),
    ),
    "transfer": (
        "from the harnesses that a model was trained in to others",
        lambda report: cross_harness.transfer(report.runs),
    ),
    "behaviour": (
        "what the agents do: verification, coverage, efficiency, loops ...",
        lambda report: behaviour_tables.behaviour(report.runs, report.measured),
    ),
    "effort": (
        "what an attempt takes: model calls, tool calls, tokens",
        lambda report: behaviour_tables.effort(report.runs, report.measured),
    ),
    "measures": (
        "each measure of behaviour with its definition and an example",
        lambda report: behaviour_tables.measures(report.runs, report.measured),
    ),
    "tool-use": (
        "which functions the model calls",
        lambda report: behaviour_tables.tool_use(report.runs, report.measured),
    ),
    "cost": ("tokens and money", lambda report: cost.cost(report.runs, report.prices)),
    "time": ("where the time goes", lambda report: cost.time(report.runs)),
}
"""Name -> what it shows, and how it is made."""
