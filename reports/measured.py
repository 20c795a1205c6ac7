"""All attempts of the runs, measured: one pass over the traces, one trace in memory at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pandas as pd

from reports.behaviour import MEASURES, Attempt, Measure
from reports.functions import FunctionCall, function_calls, own_calls
from reports.intervals import Interval, over_tasks
from reports.load import Runs
from reports.tasks import RunTasks, tasks_of
from rollout.types import Episode, JsonObject, Task, Trace

__all__ = ["Measured", "measured"]


@dataclass(frozen=True, eq=False)
class Measured:
    """The measures of each graded attempt, and which functions were called."""

    attempts: pd.DataFrame
    """One row a graded attempt: run, harness, model, task, episode, passed, and a column a measure."""
    functions: pd.DataFrame
    """One row a run and function: tool, kind (task, shell, harness), calls, calls in passed attempts."""
    problems: tuple[str, ...] = ()
    """Whose reference solutions are not to be had, and why."""
    measures: tuple[Measure, ...] = MEASURES

    def of(self, run: str) -> pd.DataFrame:
        """The attempts of a run."""
        return self.attempts[self.attempts["run"] == run]

    def value(self, run: str, measure: Measure) -> Interval:
        """A measure's mean over a run's tasks."""
        found = self.of(run)
        return over_tasks(found[measure.name], found["task"], share=measure.share)

    def example(self, run: str, measure: Measure) -> str:
        """The id of the episode that shows best what is meant; empty where none shows it."""
        values = self.of(run).set_index("episode")[measure.name].dropna()
        if measure.example == "lowest":
            return str(values.idxmin()) if len(values) else ""
        return str(values.idxmax()) if values.gt(0).any() else ""

    def judged(self, verdicts: pd.DataFrame, measures: Sequence[Measure]) -> Measured:
        """With what a judge said, in columns beside the computed ones."""
        merged = self.attempts.merge(verdicts, on=["run", "episode"], how="left")
        return replace(self, attempts=merged, measures=(*self.measures, *measures))


@lru_cache(maxsize=4)
def measured(runs: Runs) -> Measured:
    """Read all traces, once."""
    known = {run.label: tasks_of(run.manifest) for run in runs}
    rows: list[JsonObject] = []
    called: Counter[tuple[str, str, str, bool]] = Counter()
    for run, episode, trace in runs.traces():
        if not episode.outcome.graded:
            continue
        task = known[run.label].tasks.get(episode.task_id)
        attempt = _attempt(episode, trace, task)
        names = {tool.name for tool in task.tools} if task else set()
        names |= {call.name for call in trace.tool_calls}
        called.update(
            (run.label, *_function(call, names), attempt.passed) for call in attempt.functions
        )
        rows.append(
            {
                "run": run.label,
                "harness": run.harness,
                "model": run.model,
                "task": episode.task_id,
                "episode": episode.id,
                "passed": attempt.passed,
                **{m.name: m.function(attempt) for m in MEASURES if m.function},
            }
        )
    columns = ["run", "harness", "model", "task", "episode", "passed"]
    frame = pd.DataFrame(rows, columns=[*columns, *(m.name for m in MEASURES)])
    return Measured(frame, _functions(called), tuple(_problems(known)))


def _attempt(episode: Episode, trace: Trace, task: Task | None) -> Attempt:
    calls = own_calls(trace)
    reference = task.reference if task else None
    return Attempt(
        passed=episode.outcome.value == "passed",
        turns=len(calls),
        tokens=episode.usage.prompt + episode.usage.completion,
        functions=tuple(function_calls(calls)),
        tools=trace.tool_calls,
        steps=tuple(step.call for step in reference.steps) if reference else (),
        services={tool.name: tool.group for tool in task.tools} if task else {},
    )


def _function(call: FunctionCall, tools: set[str]) -> tuple[str, str]:
    """A function's bare name, and whose it is. Harnesses put a server's name before that of a tool."""
    found = [tool for tool in tools if call.name == tool or call.name.endswith(f"_{tool}")]
    if found:
        return max(found, key=len), "task"
    return call.name, "shell" if call.shell else "harness"


def _functions(called: Counter[tuple[str, str, str, bool]]) -> pd.DataFrame:
    rows = {
        key: {"all": called[*key, True] + called[*key, False], "passed": called[*key, True]}
        for key in dict.fromkeys(key[:3] for key in called)
    }
    totals = {
        (run, what): sum(row[what] for key, row in rows.items() if key[0] == run)
        for run in {key[0] for key in rows}
        for what in ("all", "passed")
    }
    found = []
    for (run, tool, kind), row in rows.items():
        share = row["all"] / totals[run, "all"]
        in_passed = row["passed"] / (totals[run, "passed"] or float("nan"))
        found.append((run, tool, kind, row["all"], share, row["passed"], in_passed))
    columns = ["run", "tool", "kind", "calls", "share", "calls_passed", "share_passed"]
    frame = pd.DataFrame(found, columns=columns)
    return frame.sort_values(["run", "calls"], ascending=[True, False], ignore_index=True)


def _problems(known: Mapping[str, RunTasks]) -> list[str]:
    return [
        f"{run}: no reference solutions for what is compared with them: {tasks.problem}"
        for run, tasks in known.items()
        if tasks.problem
    ]
