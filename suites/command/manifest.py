"""The manifest of a suite's run: made from the setup, checked on resume, completed as calls come in."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from rollout.episode import Setup
from rollout.errors import UsageError
from rollout.gateway.tools import skills
from rollout.harness import Harness
from rollout.manifest import Difference, Manifest, differences
from rollout.store import EpisodeStore
from rollout.suite import Suite
from rollout.types import Episode, JsonObject, Task, Trace
from suites.command.options import Options

__all__ = ["claim", "complete", "describe"]

TASK = "tasks."
SHOWN = 5
"""Names of each kind that a message tells."""


def claim(
    store: EpisodeStore, suite: Suite, options: Options, tasks: Sequence[Task], setup: Setup
) -> Manifest:
    """Write a new run's manifest, or check that a resumed run is the same one.

    Raises UsageError naming each setting that differs.
    """
    folder, new = store.folder, describe(suite, options, tasks, setup)
    # Killed before there was a manifest, a run has no episode either.
    if not options.resume or not (store.episodes() or Manifest.exists(folder)):
        new.write(folder)
        return new
    old = Manifest.read(folder)
    changed = differences(old, new)
    if changed:
        shown = "; ".join(_told(changed))
        raise UsageError(f"{folder} was run with other settings, so it can't be resumed: {shown}")
    resumed = old.resumed_by(new)
    resumed.write(folder)
    return resumed


def _told(changed: Sequence[Difference]) -> Iterator[str]:
    """Settings one by one; tasks, whose values are digests, by what became of them."""
    settings = [str(one) for one in changed if not one.field.startswith(TASK)]
    yield from settings[:SHOWN]
    if len(settings) > SHOWN:
        yield f"{len(settings) - SHOWN} more"
    tasks = [one for one in changed if one.field.startswith(TASK)]
    for words, found in (
        ("left out now", [one for one in tasks if one.new is None]),
        ("not in it", [one for one in tasks if one.old is None]),
        ("changed since", [one for one in tasks if None not in (one.old, one.new)]),
    ):
        names = [one.field.removeprefix(TASK) for one in found]
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        if names:
            yield f"tasks {words}: {', '.join(names[:SHOWN])}{more}"


def complete(folder: Path, manifest: Manifest, played: Iterable[tuple[Episode, Trace]]) -> Manifest:
    """Add what the harness first sent for tasks: its system prompt and tool schemas."""
    amended = manifest
    for episode, trace in played:
        first = next((call for call in trace.calls if call.kind == "main"), None)
        if first is not None:
            amended = amended.amend(episode.task_id, first)
    if amended is not manifest:
        amended.write(folder)
    return amended


def describe(suite: Suite, options: Options, tasks: Sequence[Task], setup: Setup) -> Manifest:
    """What is about to run."""
    gateway = setup.gateway
    retry = dataclasses.asdict(gateway.retry)
    return Manifest(
        suite={"name": suite.name, **suite.fingerprint(options.data)},
        tasks={task.id: task.fingerprint for task in tasks},
        harness=_harness(options, setup.harness),
        tools=setup.surface,
        skills=_skills_hash(tasks) if setup.surface == "skill" else "",
        model=gateway.upstream.fingerprint(),
        sampling=options.sampling,
        context_window=gateway.upstream.context_window,
        max_output=gateway.max_output,
        environment=setup.environment.fingerprint(),
        sandbox={**setup.sandboxes.fingerprint(), "limits": dataclasses.asdict(setup.limits)},
        judge={"spec": options.judge, **setup.judge.fingerprint()} if setup.judge else {},
        retries={"calls": retry},
        seed=options.seed,
        attempts=options.attempts,
        timeout=options.timeout,
    )


def _harness(options: Options, harness: Harness) -> JsonObject:
    name, _, _ = options.harness.partition(":")
    chosen = {"preset": harness.preset, "options": dict(harness.options)}
    return {"name": name, **chosen, **harness.fingerprint()}


def _skills_hash(tasks: Sequence[Task]) -> str:
    """Over all SKILL.md texts, with a fixed address in place of each episode's own."""
    texts = [skills(task.tools, "http://gateway/e/token/tools") for task in tasks]
    return hashlib.sha256(msgspec.json.encode(texts, order="sorted")).hexdigest()
