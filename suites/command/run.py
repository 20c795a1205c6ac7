"""One run of a suite: what is missing is run, then what the store holds is summed up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.console import Console

from rollout.episode import Setup
from rollout.errors import usable
from rollout.manifest import Manifest
from rollout.runner import Runner
from rollout.store import EpisodeStore
from rollout.suite import Suite
from rollout.types import Episode, Outcome, Task
from suites.command.inspect_log import write_log
from suites.command.manifest import claim, complete
from suites.command.options import Options
from suites.command.progress import count, display
from suites.command.result import Result, summarise_run
from suites.command.screen import say

__all__ = ["SuiteRun"]

FILES = {
    "manifest": "manifest.json",
    "episodes": "episodes.jsonl",
    "traces": "traces.zst",
    "summary": "summary.json",
    "inspect": "inspect.eval",
}
"""What a run's folder holds."""


@dataclass(frozen=True)
class SuiteRun:
    """A run, with everything started that its episodes need."""

    suite: Suite
    options: Options
    tasks: Sequence[Task]
    setup: Setup
    folder: Path
    screen: Console
    """Where progress and messages go."""

    async def run(self) -> Result:
        """Run the attempts that the folder does not hold yet. Raises UsageError or RunnerStopped."""
        folder, resume = self.folder, self.options.resume
        with EpisodeStore.open(folder) if resume else EpisodeStore.create(folder) as store:
            if store.recovered:
                say(self.screen, store.recovered)
            manifest = claim(store, self.suite, self.options, self.tasks, self.setup)
            self._announce()
            manifest = await self._attempt(store, manifest)
            latest = store.latest()
            result = self._result([latest[key] for key in sorted(self._wanted & latest.keys())])
            note = write_log(folder / FILES["inspect"], store, manifest, self.tasks, result)
            if note:
                say(self.screen, note)
        return result

    @property
    def _wanted(self) -> set[tuple[str, int]]:
        """Task and number of all attempts."""
        return {(task.id, n) for task in self.tasks for n in range(self.options.attempts)}

    async def _attempt(self, store: EpisodeStore, manifest: Manifest) -> Manifest:
        """Run what is missing; the manifest, with what the harness first sent for each task."""
        options, wanted = self.options, self._wanted
        done: Counter[Outcome] = Counter(
            episode.outcome
            for key, episode in store.latest().items()
            if key in wanted and episode.outcome is not Outcome.INFRA_ERROR
        )
        if options.resume:
            say(self.screen, f"{done.total()} of {count(len(wanted), 'attempt')} done already")
        shown = display(self.screen, total=len(wanted), done=done, quiet=options.quiet)
        with shown as observer:
            runner = Runner(
                self.setup,
                store=store,
                concurrency=options.concurrency,
                seed=options.seed,
                observer=observer,
            )
            async for group in runner.groups(self.tasks, options.attempts):
                played = ((episode, store.trace(episode)) for episode in group.episodes)
                manifest = complete(self.folder, manifest, played)
        return manifest

    def _announce(self) -> None:
        """Say what is about to run, and what the reader must not overlook."""
        options, setup = self.options, self.setup
        harness = " ".join(filter(None, (options.harness, setup.harness.version)))
        lines = [
            f"{self.suite.name}: {count(len(self.tasks), 'task')} x "
            f"{count(options.attempts, 'attempt')}, "
            f"{harness} with {setup.surface} tools, model {setup.gateway.upstream.label}, "
            f"sandbox {setup.sandboxes.name}, {options.concurrency} at once",
            f"run: {self.folder}",
        ]
        if setup.sandboxes.warning and setup.harness.program is not None:
            lines.append(f"warning: {setup.sandboxes.warning}")
        if setup.harness.note:
            lines.append(f"note: {setup.harness.note}")
        for line in lines:
            say(self.screen, line)

    def _result(self, episodes: Sequence[Episode]) -> Result:
        """All figures, which are written to the folder as well."""
        result = summarise_run(
            suite=self.suite.name,
            harness=self.options.harness,
            model=self.setup.gateway.upstream.label or self.options.model,
            k=self.options.attempts,
            tasks=self.tasks,
            episodes=episodes,
            paths={what: str(self.folder / name) for what, name in FILES.items()},
            notes=self.suite.notes(),
        )
        summary = msgspec.json.format(msgspec.json.encode(result.as_json()), indent=2)
        path = self.folder / FILES["summary"]
        with usable(path):
            path.write_bytes(summary + b"\n")
        return result
