"""What a calibration came to: for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judges.agreement import Agreement, Case
from rollout.judge import Spent
from rollout.manifest import Code
from rollout.statistics import Estimate
from rollout.text import one_line
from rollout.types import JsonObject, Record

__all__ = ["Report", "print_report"]

MEANING = {
    "agreement": "the same verdict",
    "kappa": "agreement beyond chance",
    "false_success": "failures that it passes",
    "false_failure": "successes that it fails",
    "bias": "its success rate - the true one",
}


class Report(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A judge against the verifiers of one run."""

    run: str
    suite: str
    judge: JsonObject
    """Spec, model, address and sampling."""
    protocol: JsonObject
    agreement: Agreement
    cases: tuple[Case, ...]
    left_out: Mapping[str, int]
    """Why attempts were not judged, and how many."""
    spent: Spent
    notes: tuple[str, ...] = ()
    """What a reader must know to compare the figures."""
    code: Code = msgspec.field(default_factory=Code.here)

    @property
    def differing(self) -> list[Case]:
        """Where the judge is wrong."""
        return [case for case in self.cases if case.judge not in (None, case.truth)]

    def as_json(self) -> JsonObject:
        """The documented shape of `--json`."""
        told: JsonObject = msgspec.to_builtins(self)
        usage = self.spent.usage
        spent = {
            "calls": self.spent.calls,
            "cached": self.spent.cached,
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
        }
        differing = [case.episode for case in self.differing]
        return {**told, "spent": spent, "differing": differing}


def print_report(console: Console, report: Report) -> None:
    """The table, the confusion, the cost, and every attempt where the judge is wrong."""
    for line in _head(report):
        _say(console, line)
    console.print(_figures(report.agreement))
    console.print(_confusion(report.agreement))
    for line in _tail(report):
        _say(console, line)


def _head(report: Report) -> Iterator[str]:
    found = report.agreement
    tasks = len({case.task for case in report.cases})
    yield ""
    yield (
        f"judge {report.judge.get('spec', '')} against the verifiers of {report.run} "
        f"({report.suite}): {found.judged} attempts at {tasks} tasks"
    )
    yield from report.notes


def _tail(report: Report) -> Iterator[str]:
    spent = report.spent
    tokens = spent.usage.prompt + spent.usage.completion
    yield (
        f"{tokens} tokens in {spent.calls} calls (prompt {spent.usage.prompt}, "
        f"completion {spent.usage.completion}); {spent.cached} replies were kept from before"
    )
    for reason, n in report.left_out.items():
        yield f"left out, {reason}: {n}"
    if failed := [case for case in report.cases if case.judge is None]:
        yield f"no verdict (judge_error), in none of the figures: {len(failed)}"
        yield from (f"  {case.episode}: {case.reason}" for case in failed)
    if wrong := report.differing:
        yield f"judge and verifier differ: {len(wrong)}"
        yield from map(_differs, wrong)


def _differs(case: Case) -> str:
    truth, judge = (_word(said) for said in (case.truth, bool(case.judge)))
    return f"  {case.episode} is a {truth}, the judge says {judge}: {case.reason}"


def _word(success: bool) -> str:
    return "success" if success else "failure"


def _figures(found: Agreement) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("")
    for name in ("value", "95 %", "tasks"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for name, meaning in MEANING.items():
        estimate: Estimate | None = getattr(found, name)
        table.add_row(name.replace("_", " "), *_shown(name, estimate), meaning)
    return table


def _shown(name: str, estimate: Estimate | None) -> Sequence[str]:
    if estimate is None:
        return "-", "-", "-"
    form = {"kappa": "{:.2f}", "bias": "{:+.1%}"}.get(name, "{:.1%}")
    value, low, high = map(form.format, (estimate.value, estimate.low, estimate.high))
    return value, f"{low} .. {high}", str(estimate.n)


def _confusion(found: Agreement) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("", "judge: success", "judge: failure"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    table.add_row("verifier: success", str(found.both_success), str(found.truth_only))
    table.add_row("verifier: failure", str(found.judge_only), str(found.both_failure))
    return table


def _say(console: Console, line: str) -> None:
    indent = " " * (len(line) - len(line.lstrip()))
    console.print(Text(indent + one_line(line)), soft_wrap=True)
