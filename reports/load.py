"""From run folders to data: the manifest and the episodes at once, the traces one at a time when asked.

Nothing is written beside a run: it may be on a read-only disk, and it may still be under way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pandas as pd

from rollout.errors import UsageError
from rollout.manifest import Manifest
from rollout.plugins import unknown
from rollout.store import EpisodeStore
from rollout.types import Call, Episode, JsonObject, Outcome, ToolCall, Trace

__all__ = ["Run", "Runs", "load_runs"]

LONGEST_SETTING = 24
"""Characters of a model's setting that may stand in its label."""
SERVING = ("model", "base_url", "context_window", "dialects", "version", "arguments")
"""What manifests say of a model beside which model it is: how it was served."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run: what was run, and the last try of each attempt."""

    folder: Path
    label: str
    """What people call it in these reports; unique among the runs."""
    harness: str
    """Name, with the preset where it is not the default: `react`, `codex:NAME`."""
    model: str
    manifest: Manifest
    store: EpisodeStore
    episodes: tuple[Episode, ...]
    """The last try of each attempt, by task and attempt."""
    earlier: tuple[Episode, ...] = ()
    """Tries that the infrastructure failed and that were run again."""

    @property
    def suite(self) -> str:
        return str(self.manifest.suite.get("name", ""))

    @property
    def complete(self) -> bool:
        """Whether each attempt that the manifest announces has ended."""
        return len(self.episodes) >= len(self.manifest.tasks) * self.manifest.attempts

    def trace(self, episode: Episode) -> Trace:
        """What an episode recorded. Raises UsageError when it is damaged."""
        return self.store.trace(episode)


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of a report, and their records as data frames. Close it, or use it in a `with`."""

    runs: tuple[Run, ...]
    base: Run
    """The run that the others are compared with."""
    k: int
    """The k of pass@k and pass^k: the fewest attempts per task of any of the runs."""
    trained: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Model -> the harnesses that it was trained in."""

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the stores. Closing twice is harmless."""
        for run in self.runs:
            run.store.close()

    def find(self, name: str) -> Run:
        """A run by its label, its folder, or the folder's name. Raises UsageError."""
        return _find(self.runs, name)

    def traces(self) -> Iterator[tuple[Run, Episode, Trace]]:
        """All episodes with their traces, one trace in memory at a time."""
        for run in self.runs:
            for episode in run.episodes:
                yield run, episode, run.trace(episode)

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """One row an attempt: how it ended, and what it cost."""
        rows = [_episode_row(run, episode) for run in self.runs for episode in run.episodes]
        return pd.DataFrame(rows, columns=list(_EPISODE))

    @property
    def calls(self) -> pd.DataFrame:
        """One row a model call. Reads all traces, the first time."""
        return self._from_traces[0]

    @property
    def tool_calls(self) -> pd.DataFrame:
        """One row a dispatched tool call. Reads all traces, the first time."""
        return self._from_traces[1]

    @cached_property
    def _from_traces(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        calls: list[JsonObject] = []
        tool_calls: list[JsonObject] = []
        for run, episode, trace in self.traces():
            key = {"run": run.label, "episode": episode.id, "task": episode.task_id}
            calls += (_row(key, _CALL, call) for call in trace.calls)
            tool_calls += (_row(key, _TOOL_CALL, call) for call in trace.tool_calls)
        named = ["run", "episode", "task"]
        return (
            pd.DataFrame(calls, columns=[*named, *_CALL]),
            pd.DataFrame(tool_calls, columns=[*named, *_TOOL_CALL]),
        )


def load_runs(
    paths: Sequence[Path], *, base: str = "", k: int = 0, trained: Sequence[str] = ()
) -> Runs:
    """Read the runs in these folders. Raises UsageError for what is none, or can't be read.

    `base` names the run to compare with (else the first), `k` overrides that of pass^k, and each of
    `trained` is `MODEL=harness,harness`.
    """
    if not paths:
        raise UsageError("name at least one run's folder")
    for path in paths:
        if not path.is_dir():
            raise UsageError(f"{path}: no such folder; name the folder of a run (runs/NAME)")
    twice = [path for path, n in Counter(path.resolve() for path in paths).items() if n > 1]
    if twice:
        raise UsageError(f"{twice[0]} is named twice: leave one out")
    with ExitStack() as opened:
        manifests = [Manifest.read(path) for path in paths]
        stores = [opened.enter_context(EpisodeStore.read(path)) for path in paths]
        found = _runs(paths, manifests, stores)
        runs = Runs(
            runs=found,
            base=_find(found, base) if base else found[0],
            k=k or min(run.manifest.attempts for run in found),
            trained=_trained(trained, found),
        )
        opened.pop_all()
    return runs


def _runs(
    paths: Sequence[Path], manifests: Sequence[Manifest], stores: Sequence[EpisodeStore]
) -> tuple[Run, ...]:
    harnesses = [_harness(manifest) for manifest in manifests]
    models = _models(manifests)
    labels = _labels(paths, manifests, harnesses, models)
    runs = []
    for n, (path, store) in enumerate(zip(paths, stores, strict=True)):
        latest = store.latest()
        last = {episode.id for episode in latest.values()}
        run = Run(
            folder=path,
            label=labels[n],
            harness=harnesses[n],
            model=models[n],
            manifest=manifests[n],
            store=store,
            episodes=tuple(episode for _, episode in sorted(latest.items())),
            earlier=tuple(episode for episode in store.episodes() if episode.id not in last),
        )
        runs.append(run)
    return tuple(runs)


def _find(runs: Sequence[Run], name: str) -> Run:
    asked = Path(name).resolve()
    for run in runs:
        if name in (run.label, run.folder.name) or asked == run.folder.resolve():
            return run
    raise unknown("run", name, [run.label for run in runs])


def _trained(given: Sequence[str], runs: Sequence[Run]) -> dict[str, tuple[str, ...]]:
    """From `MODEL=harness,harness`, the model as it is labelled; its name may hold a `=` itself."""
    trained = {}
    for text in given:
        model, equals, harnesses = text.rpartition("=")
        names = tuple(name.strip() for name in harnesses.split(",") if name.strip())
        if not equals or not names:
            raise UsageError(f"--trained {text}: say MODEL=harness,harness")
        if model not in (known := {run.model for run in runs}):
            raise unknown("--trained model", model, sorted(known))
        trained[model] = names
    return trained


def _harness(manifest: Manifest) -> str:
    name = str(manifest.harness.get("name", ""))
    preset = manifest.harness.get("preset", "default")
    return name if preset in ("default", "") else f"{name}:{preset}"


def _models(manifests: Sequence[Manifest]) -> list[str]:
    """The models' names, with the settings of the policy by which those of one name differ (`p=0.8`)."""
    full = [str(manifest.model.get("model", "")) for manifest in manifests]
    last = [name.rstrip("/").rpartition("/")[2] for name in full]
    told: list[str] = []
    for n, manifest in enumerate(manifests):
        twins = [i for i, name in enumerate(last) if name == last[n]]
        name = last[n] if len({full[i] for i in twins}) == 1 else full[n]
        settings = [
            f"{key}={_shortened(value)}"
            for key, value in manifest.model.items()
            if key not in SERVING
            and isinstance(value, int | float | str)
            and any(manifests[i].model.get(key) != value for i in twins)
        ]
        told.append(" ".join([name, *settings]))
    return told


def _shortened(value: float | str) -> str:
    """The end of a long text tells more than its beginning: paths of checkpoints."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST_SETTING else f"…{text[-LONGEST_SETTING:]}"


def _labels(
    paths: Sequence[Path],
    manifests: Sequence[Manifest],
    harnesses: Sequence[str],
    models: Sequence[str],
) -> list[str]:
    """As short as tells the runs apart: harness and model, then the tool surface, then the folder."""
    labels = [f"{harness} · {model}" for harness, model in zip(harnesses, models, strict=True)]
    for more in ([manifest.tools for manifest in manifests], [str(path) for path in paths]):
        seen = Counter(labels)
        labels = [
            f"{label} · {word}" if seen[label] > 1 else label
            for label, word in zip(labels, more, strict=True)
        ]
    return labels


_EPISODE: dict[str, Callable[[Run, Episode], Any]] = {
    "run": lambda run, _: run.label,
    "harness": lambda run, _: run.harness,
    "preset": lambda run, _: str(run.manifest.harness.get("preset", "")),
    "model": lambda run, _: run.model,
    "suite": lambda run, _: run.suite,
    "surface": lambda run, _: run.manifest.tools,
    "episode": lambda _, e: e.id,
    "task": lambda _, e: e.task_id,
    "attempt": lambda _, e: e.attempt,
    "retry": lambda _, e: e.retry,
    "outcome": lambda _, e: e.outcome.value,
    "cause": lambda _, e: e.cause,
    "reason": lambda _, e: e.reason,
    "graded": lambda _, e: e.outcome.graded,
    "passed": lambda _, e: e.outcome is Outcome.PASSED,
    "score": lambda _, e: e.grade.score if e.grade else float("nan"),
    "calls": lambda _, e: e.calls,
    "tool_calls": lambda _, e: e.tool_calls,
    "prompt_tokens": lambda _, e: e.usage.prompt,
    "completion_tokens": lambda _, e: e.usage.completion,
    "tokens": lambda _, e: e.usage.prompt + e.usage.completion,
    "seconds": lambda _, e: e.timing.total,
    "setup_seconds": lambda _, e: e.timing.setup,
    "model_seconds": lambda _, e: e.timing.model,
    "tool_seconds": lambda _, e: e.timing.tools,
    "grading_seconds": lambda _, e: e.timing.grading,
    "harness_seconds": lambda _, e: _harness_seconds(e),
    "started": lambda _, e: e.started,
    "timed_out": lambda _, e: e.timed_out,
    "limit": lambda _, e: e.limit,
}
"""The columns of `Runs.episodes`."""

_CALL: dict[str, Callable[[Call], Any]] = {
    "index": lambda call: call.index,
    "kind": lambda call: call.kind,
    "agent": lambda call: call.agent,
    "dialect": lambda call: call.dialect,
    "status": lambda call: call.status,
    "started": lambda call: call.started,
    "seconds": lambda call: call.seconds,
    "upstream_seconds": lambda call: call.upstream_seconds,
    "tries": lambda call: call.tries,
    "prompt_tokens": lambda call: call.usage.prompt,
    "completion_tokens": lambda call: call.usage.completion,
    "finish": lambda call: call.finish,
    "model": lambda call: call.model,
    "weights": lambda call: call.weights,
}
"""The columns of `Runs.calls`, beside the run, the episode and the task."""

_TOOL_CALL: dict[str, Callable[[ToolCall], Any]] = {
    "index": lambda call: call.index,
    "name": lambda call: call.name,
    "status": lambda call: call.status,
    "ok": lambda call: call.status < 400,
    "surface": lambda call: call.surface,
    "started": lambda call: call.started,
    "seconds": lambda call: call.seconds,
}
"""The columns of `Runs.tool_calls`, likewise."""


def _episode_row(run: Run, episode: Episode) -> JsonObject:
    return {name: value(run, episode) for name, value in _EPISODE.items()}


def _row(key: JsonObject, columns: Mapping[str, Callable[[Any], Any]], record: Any) -> JsonObject:
    return key | {name: value(record) for name, value in columns.items()}


def _harness_seconds(episode: Episode) -> float:
    """What is left of the time; waits for model and tools may overlap, so never below 0."""
    spent = episode.timing
    return max(0.0, spent.total - spent.setup - spent.model - spent.tools - spent.grading)
