"""`python -m reports`: what the numbers of one or more runs mean."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from judges.options import add_judge_arguments, open_judge
from reports.catalogue import TABLES, Report
from reports.cost import PRICES, read_prices
from reports.judged import JUDGED, ask_judge
from reports.load import Runs, load_runs
from reports.measured import Measured
from reports.terminal import print_table, print_verdict
from reports.verdict import verdict
from reports.write import write_tables
from rollout.errors import UsageError
from rollout.options import Parser, positive
from rollout.plugins import unknown
from suites.command.screen import say

__all__ = ["main"]

USAGE, INTERRUPTED = 2, 130
ANSWERED = {"cross-harness", "paired"}
"""Tables in a terminal after which the answer in words is printed."""

EPILOG = """\
examples:
  python -m reports runs/A runs/B                        writes report/index.html and every table
  python -m reports runs/A runs/B --table cross-harness  prints one table, writes nothing
  python -m reports runs/* --base runs/A --out report/october

A run may be given by its folder, and after --base also by its label or its folder's name.
A judge's replies are kept in --judge-cache, here by default --out, so that none is paid for twice.
Exit codes: 0 done, 2 wrong usage, 130 interrupted.
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Read the runs, print or write their report; exits with 0, 2 or 130."""
    screen = Console(stderr=True)
    try:
        arguments = _parser().parse_args(argv)
        if arguments.listing:
            _list(Console())
        else:
            _report(arguments, screen)
    except UsageError as error:
        say(screen, f"error: {error}", style="red")
        sys.exit(USAGE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _report(arguments: argparse.Namespace, screen: Console) -> None:
    for name in arguments.table:
        if name not in TABLES:
            raise unknown("table", name, TABLES)
    prices = read_prices(arguments.prices)
    with load_runs(
        arguments.runs, base=arguments.base, k=arguments.k or 0, trained=arguments.trained
    ) as runs:
        report = Report(runs, prices, _judging(arguments, runs, screen))
        if arguments.table:
            _print(report, arguments.table)
        else:
            _write(report, arguments.out, arguments.title)


def _print(report: Report, names: Sequence[str]) -> None:
    console = Console()
    for name in names:
        print_table(console, report.table(name))
    if ANSWERED & set(names):
        console.print()
        print_verdict(console, verdict(report.runs))


def _write(report: Report, folder: Path, title: str) -> None:
    # Plotly takes a second to import, which a table in the terminal does not need.
    from reports.html import write_report

    tables, answer = report.tables(), verdict(report.runs)
    written = write_tables(tables, folder / "tables")
    page = write_report(report.runs, tables, folder, title=title, answer=answer)
    console = Console()
    print_verdict(console, answer)
    say(console, f"{page}\n{len(written)} files in {folder / 'tables'}")


def _judging(
    arguments: argparse.Namespace, runs: Runs, screen: Console
) -> Callable[[Measured], Measured]:
    """Adds the judge's verdicts to what is measured, once that is asked for."""
    if not arguments.judge:
        return lambda found: found
    return partial(_judged, arguments, runs, screen)


def _judged(
    arguments: argparse.Namespace, runs: Runs, screen: Console, found: Measured
) -> Measured:
    async def ask() -> Measured:
        cache = arguments.judge_cache or arguments.out
        asked = (arguments.judge, arguments.judge_base_url, cache)
        async with open_judge(*asked, temperature=arguments.judge_temperature) as judge:
            assert judge is not None
            verdicts, missing = await ask_judge(runs, judge)
        if missing:
            say(screen, f"the judge gave no verdict on {missing} questions; they are left out")
        return found.judged(verdicts, JUDGED)

    return asyncio.run(ask())


def _list(console: Console) -> None:
    for name, (what, _) in TABLES.items():
        say(console, f"{name:15} {what}")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m reports",
        description="Compare runs: which is more reliable, why, and how sure one can be.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="folders of runs")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="where index.html and the tables are written (default: report)",
    )
    parser.add_argument("--title", default="", metavar="TEXT", help="title of the page")
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="NAME",
        help="print this table instead of writing anything; may be repeated (--list)",
    )
    parser.add_argument("--list", dest="listing", action="store_true", help="list the tables")
    compared = parser.add_argument_group("what is compared")
    compared.add_argument(
        "--base",
        default="",
        metavar="RUN",
        help="the run that the others are compared with (the first)",
    )
    compared.add_argument(
        "--k",
        type=positive(int),
        metavar="K",
        help="the k of pass@k and pass^k (default: the fewest attempts per task of any run)",
    )
    compared.add_argument(
        "--trained",
        action="append",
        default=[],
        metavar="MODEL=HARNESS,...",
        help="the harnesses that a model was trained in, for the transfer table; may be repeated",
    )
    compared.add_argument(
        "--prices",
        type=Path,
        default=PRICES,
        metavar="FILE",
        help="YAML list of {model: PATTERN, input: USD, output: USD}, per million tokens",
    )
    add_judge_arguments(
        parser.add_argument_group("a judge's view of behaviour, beside the computed")
    )
    return parser


if __name__ == "__main__":
    main()
