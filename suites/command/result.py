"""The end of a run: the table for people, the same as JSON for machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from rollout.judge import Spent
from rollout.statistics import Estimate, Metrics, summarise, summarise_by
from rollout.types import Episode, JsonObject, Outcome, Record, Task, Usage
from suites.command.progress import count, describe
from suites.command.screen import say, shown

__all__ = ["Result", "print_result", "print_tasks", "summarise_run"]


class Result(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What a run came to."""

    suite: str
    harness: str
    model: str
    k: int
    overall: Metrics
    by_category: dict[str, Metrics]
    episodes: tuple[Episode, ...]
    """The last try of each attempt."""
    categories: dict[str, str]
    """Task id -> category."""
    paths: dict[str, str]
    notes: tuple[str, ...] = ()
    """What a reader must know to compare the figures."""

    def as_json(self) -> JsonObject:
        """The documented shape of `--json` and of `summary.json`."""
        tasks: dict[str, list[Episode]] = {}
        for episode in self.episodes:
            tasks.setdefault(episode.task_id, []).append(episode)
        return {
            "suite": self.suite,
            "harness": self.harness,
            "model": self.model,
            "attempts": self.k,
            "metrics": _rates_json(self.overall, self.k),
            "outcomes": self.overall.outcomes,
            "judge": _spent_json(self.judged),
            "attempted": self.overall.attempted,
            "graded": self.overall.graded,
            "incomplete": list(self.overall.incomplete),
            "categories": {
                name: _rates_json(metrics, self.k) for name, metrics in self.by_category.items()
            },
            "notes": list(self.notes),
            "tasks": [self._task_json(task, found) for task, found in tasks.items()],
            "paths": self.paths,
        }

    @property
    def judged(self) -> Spent:
        """What judges cost, over the attempts that they graded."""
        told = [e.grade.evidence.get("judge_spent") for e in self.episodes if e.grade]
        return sum((msgspec.convert(each, Spent) for each in told if each), Spent())

    def _task_json(self, task: str, episodes: Sequence[Episode]) -> JsonObject:
        return {
            "id": task,
            "category": self.categories.get(task, ""),
            "attempts": [
                {
                    "episode": episode.id,
                    "outcome": episode.outcome.value,
                    "score": episode.grade.score if episode.grade else None,
                    "cause": episode.cause,
                    "reason": episode.reason,
                    "calls": episode.calls,
                    "tokens": episode.usage.prompt + episode.usage.completion,
                    "seconds": round(episode.timing.total, 3),
                }
                for episode in episodes
            ],
        }


def summarise_run(
    *,
    suite: str,
    harness: str,
    model: str,
    k: int,
    tasks: Sequence[Task],
    episodes: Sequence[Episode],
    paths: Mapping[str, str],
    notes: Sequence[str] = (),
) -> Result:
    """All figures of a run, from the last try of each attempt."""
    categories = {task.id: task.category for task in tasks}
    return Result(
        suite=suite,
        harness=harness,
        model=model,
        k=k,
        overall=summarise(episodes, k),
        by_category=summarise_by(episodes, k, categories),
        episodes=tuple(episodes),
        categories=categories,
        paths=dict(paths),
        notes=tuple(notes),
    )


def print_result(console: Console, result: Result) -> None:
    """The table, what was not clean and why, and where everything was written."""
    console.print()
    say(console, f"{result.suite}, harness {result.harness}, model {result.model}", style="bold")
    for note in result.notes:
        say(console, note)
    console.print(_table(result))
    k = result.k
    say(console, _legend(k))
    if (judged := result.judged).calls or judged.cached:
        tokens = _thousands(judged.usage.prompt + judged.usage.completion)
        kept = f", {judged.cached} kept from before" if judged.cached else ""
        say(console, f"judge {judged.model}: {count(judged.calls, 'call')}, {tokens} tokens{kept}")
    if result.overall.graded < result.overall.attempted:
        figures = [
            f"{name} {e.value:.1%} [{e.low:.0%}, {e.high:.0%}]"
            for name, e in result.overall.pessimistic.named(k).items()
            if e and name != "pass^1"
        ]
        say(console, "counting attempts without a grade as failed: " + ", ".join(figures))
    _print_unclean(console, result)
    written = [path for path in map(Path, result.paths.values()) if path.exists()]
    for folder in dict.fromkeys(path.parent for path in written):
        names = ", ".join(path.name for path in written if path.parent == folder)
        say(console, f"in {folder}: {names}")


def _rate(k: int) -> str:
    """The name of the first figure."""
    return f"pass^{k}" if k > 1 else "pass@1"


def _legend(k: int) -> str:
    """What the columns are, in a line or two of 80 columns."""
    interval = "95 % interval over tasks"
    rates = f"pass@1: the attempt passes ({interval})"
    if k > 1:
        rates = f"pass^{k}: all {k} attempts pass ({interval}); pass@{k}: any does"
    return f"{rates}\ncalls, tokens, seconds: sums over the attempts"


def print_tasks(console: Console, tasks: Sequence[Task]) -> None:
    """`--list`."""
    table = Table("task", "category", "lang", "level", "tools", "limit", box=None, pad_edge=False)
    for task in tasks:
        table.add_row(
            shown(task.id),
            shown(task.category),
            shown(task.language),
            shown(task.difficulty),
            str(len(task.tools)),
            shown(f"skipped: {task.skip}" if task.skip else f"{task.timeout:.0f} s"),
        )
    console.print(table)
    console.print(count(len(tasks), "task"), highlight=False)


def _table(result: Result) -> Table:
    """Fits 80 columns."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("category", no_wrap=True)
    k = result.k
    rates = (_rate(k), "95 %", f"pass@{k}", "pass@1") if k > 1 else (_rate(k), "95 %")
    for name in (*rates, "graded", "calls", "tokens", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    if len(result.by_category) > 1:
        for name, metrics in result.by_category.items():
            table.add_row(*map(shown, _row(result, name or "(none)", metrics, name)))
        table.add_section()
    table.add_row(*_row(result, "all", result.overall, None), style="bold")
    return table


def _row(result: Result, label: str, metrics: Metrics, category: str | None) -> list[str]:
    episodes = [
        episode
        for episode in result.episodes
        if category is None or result.categories.get(episode.task_id, "") == category
    ]
    usage = sum((episode.usage for episode in episodes), Usage())
    rates = metrics.rates
    shown = [_percent(rates.pass_hat_k), _interval(rates.pass_hat_k)]
    if result.k > 1:
        shown += [_percent(rates.pass_at_k), _percent(rates.pass_at_1)]
    return [
        label,
        *shown,
        f"{metrics.graded}/{metrics.attempted}",
        str(sum(episode.calls for episode in episodes)),
        _thousands(usage.prompt + usage.completion),
        f"{sum(episode.timing.total for episode in episodes):.0f}",
    ]


def _percent(estimate: Estimate | None) -> str:
    return f"{estimate.value:.1%}" if estimate else "-"


def _interval(estimate: Estimate | None) -> str:
    return f"{100 * estimate.low:.0f}-{100 * estimate.high:.0f}" if estimate else "-"


def _thousands(tokens: int) -> str:
    return f"{tokens / 1000:.0f}k" if tokens >= 10_000 else str(tokens)


def _print_unclean(console: Console, result: Result) -> None:
    """Attempts that ended otherwise than by passing or failing on their merits."""
    unclean = [
        episode
        for episode in result.episodes
        if not episode.outcome.graded or episode.cause == "policy"
    ]
    skipped: dict[str, set[str]] = {}
    for episode in unclean:
        if episode.outcome is Outcome.SKIPPED:
            skipped.setdefault(episode.reason, set()).add(episode.task_id)
        else:
            console.print(describe(episode), soft_wrap=True)
    for reason, tasks in skipped.items():
        say(console, f"skipped {count(len(tasks), 'task')}: {reason}")
    if result.overall.incomplete:
        names = ", ".join(result.overall.incomplete[:5])
        more = len(result.overall.incomplete) - 5
        say(
            console,
            f"fewer than {count(result.k, 'graded attempt')}, so not in {_rate(result.k)}: {names}"
            + (f" and {more} more" if more > 0 else ""),
        )


def _spent_json(spent: Spent) -> JsonObject:
    tokens = {"prompt_tokens": spent.usage.prompt, "completion_tokens": spent.usage.completion}
    return {"model": spent.model, "calls": spent.calls, "cached": spent.cached, **tokens}


def _rates_json(metrics: Metrics, k: int) -> dict[str, Any]:
    named = metrics.rates.named(k)
    return {name: msgspec.to_builtins(value) for name, value in named.items()}
