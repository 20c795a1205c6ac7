"""A finished run as an Inspect AI log, for `inspect view`, data frames and whatever else reads `.eval`.

The log is a view: one sample per attempt (epoch = attempt + 1), made from the episode store, which stays
the source of truth. Its metrics are computed by Inspect itself, from `passed` (0 or 1) and `reward`, by
reducers at their default thresholds: Inspect stores reducers by name only, so a threshold of our own
would be lost when it computes them again.

`inspect_ai` takes seconds and 200 MB to import, so only this module and `inspect_adapter` do, and only
when a log is to be written.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rollout.manifest import Manifest
from rollout.store import EpisodeStore
from rollout.types import Episode, JsonObject, Outcome, Task, Trace
from suites.command.inspect_messages import conversation
from suites.command.result import Result

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample

__all__ = ["reducers", "write_log"]

SCORER = "outcome"
MISSING = "no Inspect log was written; to have one: pip install inspect-ai"


def write_log(
    path: Path, store: EpisodeStore, manifest: Manifest, tasks: Sequence[Task], result: Result
) -> str:
    """Write the run's Inspect log to `path` (`.eval`). Empty, or one line on why there is none.

    Never raises: whatever goes wrong here, the run itself is complete and stored.
    """
    if find_spec("inspect_ai") is None:
        return MISSING
    try:
        # Inspect's writer wants an event loop of its own; the caller may be inside one already.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(_write, path, store, manifest, tasks, result).result()
    except Exception as error:
        return f"no Inspect log was written: {type(error).__name__}: {error}"
    return ""


def reducers(k: int) -> list[str]:
    """How Inspect is to combine the attempts at a task: pass@1, pass@k, pass^k."""
    return ["mean", f"pass_at_{k}", f"pass_k_{k}"]


def _write(
    path: Path, store: EpisodeStore, manifest: Manifest, tasks: Sequence[Task], result: Result
) -> None:
    from inspect_ai.log import recompute_metrics, write_eval_log_async

    log = _log(manifest, tasks, result)
    log.samples = _samples(store, tasks, result)
    recompute_metrics(log)
    partial = path.with_name(f".partial-{path.name}")
    asyncio.run(write_eval_log_async(log, partial))
    partial.replace(path)


def _log(manifest: Manifest, tasks: Sequence[Task], result: Result) -> EvalLog:
    """Everything but the samples."""
    from inspect_ai.log import EvalLog, EvalSpec, EvalStats

    written = manifest.as_json()
    code = manifest.code
    run = f"{result.suite}/{manifest.created}"
    metrics = [{"name": f"inspect_ai/{name}"} for name in ("mean", "stderr")]
    spec = {
        "created": manifest.created,
        "run_id": _id(run),
        "eval_id": _id(f"{run}/eval"),
        "task": result.suite,
        "task_id": _id(result.suite),
        "task_args": {"tools": manifest.tools, "seed": manifest.seed},
        "solver": result.harness,
        "solver_args": written["harness"],
        "dataset": {
            "name": result.suite,
            "samples": len(tasks),
            "sample_ids": [task.id for task in tasks],
        },
        "model": result.model,
        "model_args": written["sampling"],
        "config": {
            "epochs": result.k,
            "epochs_reducer": reducers(result.k),
            "time_limit": round(manifest.timeout) if manifest.timeout else None,
        },
        "revision": {"type": "git", "origin": "", "commit": code.commit, "dirty": code.dirty}
        if code.commit
        else None,
        "packages": {"anyharness": code.version},
        "metadata": {"manifest": written, "metrics": msgspec.to_builtins(result.overall)},
        "scorers": [{"name": SCORER, "metrics": {"*": metrics}}],
        "headline_metric": _headline(result),
    }
    stats = EvalStats()
    if result.episodes:
        stats.started_at = _time(min(episode.started for episode in result.episodes))
        stats.completed_at = _time(max(map(_end, result.episodes)))
    return EvalLog(status="success", eval=EvalSpec.model_validate(spec), stats=stats)


def _headline(result: Result) -> JsonObject | None:
    """None where nothing was graded: Inspect warns of a headline that it does not find."""
    if not result.overall.graded:
        return None
    return {
        "scorer": SCORER,
        "score": "passed",
        "metric": "mean",
        "reducer": f"pass_k_{result.k}",
    }


def _samples(store: EpisodeStore, tasks: Sequence[Task], result: Result) -> list[EvalSample]:
    by_id = {task.id: task for task in tasks}
    counted = {episode.id for episode in result.episodes}
    tries: dict[tuple[str, int], list[Episode]] = {}
    for episode in store.episodes():
        if episode.id not in counted:
            tries.setdefault((episode.task_id, episode.attempt), []).append(episode)
    return [
        _sample(
            episode,
            store.trace(episode),
            by_id[episode.task_id],
            tries.get((episode.task_id, episode.attempt), []),
            result.model,
        )
        for episode in result.episodes
        if episode.outcome is not Outcome.SKIPPED
    ]


def _sample(
    episode: Episode, trace: Trace, task: Task, earlier: Sequence[Episode], model: str
) -> EvalSample:
    from inspect_ai.log import EvalSample

    timing = episode.timing
    sample = {
        "id": task.id,
        "epoch": episode.attempt + 1,
        "uuid": _id(f"{episode.id}/{episode.started}"),
        "input": task.prompt,
        "target": "",
        "messages": conversation(trace, task.prompt),
        "output": _output(model, trace.answer),
        "scores": _scores(episode, trace),
        "metadata": _metadata(episode, trace, task),
        "model_usage": {model: _usage(episode)},
        "started_at": _time(episode.started),
        "completed_at": _time(_end(episode)),
        "total_time": timing.total,
        "working_time": max(0.0, timing.total - timing.setup - timing.grading),
        "turn_count": episode.calls,
        "limit": {"type": "custom", "limit": task.timeout, "reason": episode.reason}
        if episode.cause == "policy"
        else None,
        "error": None if episode.outcome.graded else _error(episode),
        "error_retries": [_error(before) for before in earlier] or None,
    }
    return EvalSample.model_validate(sample)


def _output(model: str, answer: str) -> JsonObject:
    message = {"role": "assistant", "content": answer}
    return {"model": model, "choices": [{"message": message, "stop_reason": "stop"}]}


def _scores(episode: Episode, trace: Trace) -> JsonObject | None:
    """None for an attempt without a grade: Inspect then leaves it out, as we do."""
    grade = episode.grade
    if grade is None or not episode.outcome.graded:
        return None
    score = {
        "value": {"passed": int(episode.outcome is Outcome.PASSED), "reward": grade.score},
        "answer": trace.answer,
        "explanation": episode.reason or "; ".join(grade.notes),
        "metadata": {"parts": grade.parts},
    }
    return {SCORER: score}


def _usage(episode: Episode) -> JsonObject:
    usage = episode.usage
    return {
        "input_tokens": usage.prompt,
        "output_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
    }


def _metadata(episode: Episode, trace: Trace, task: Task) -> JsonObject:
    return {
        "episode": episode.id,
        "outcome": episode.outcome.value,
        "cause": episode.cause,
        "category": task.category,
        "language": task.language,
        "seed": episode.seed,
        "calls": episode.calls,
        "timing": msgspec.to_builtins(episode.timing),
        "tool_calls": [
            {"name": call.name, "arguments": call.arguments, "status": call.status}
            for call in trace.tool_calls
        ],
    }


def _error(episode: Episode) -> JsonObject:
    cause = f" ({episode.cause})" if episode.cause else ""
    message = f"{episode.outcome.value}{cause}: {episode.reason}"
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _id(text: str) -> str:
    """22 characters, the length of Inspect's own ids; the same each time a run is exported."""
    return hashlib.sha256(text.encode()).hexdigest()[:22]


def _end(episode: Episode) -> float:
    return episode.started + episode.timing.total


def _time(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).isoformat()
