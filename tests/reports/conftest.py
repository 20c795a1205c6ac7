"""Real runs of policies of known quality, once for all tests of reports."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rollout.runner import Runner
from rollout.store import EpisodeStore
from suites.claweval import ClawEval
from suites.command.manifest import claim, complete
from suites.command.options import parse, select
from suites.command.setup import fitted, open_setup


@pytest.fixture(scope="session")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """react with a good and a poor policy, on six built-in tasks of claweval."""
    folder = tmp_path_factory.mktemp("runs")
    for name, p in {"good": "p=1", "poor": "p=0.3"}.items():
        asyncio.run(_run(folder / name, f"noisy-reference:{p}"))
    return {name: folder / name for name in ("good", "poor")}


async def _run(folder: Path, model: str) -> None:
    """What a suite's main does, without what is printed and exported."""
    suite = ClawEval()
    options = parse(suite, ["--model", model, "--tasks", "6", "--sandbox", "local"])
    async with open_setup(suite, options, folder) as setup:
        tasks = fitted(suite, select(suite.tasks(options.data), options.tasks), setup)
        with EpisodeStore.create(folder) as store:
            manifest = claim(store, suite, options, tasks, setup)
            async for group in Runner(setup, store=store).groups(tasks, options.attempts):
                played = ((episode, store.trace(episode)) for episode in group.episodes)
                manifest = complete(folder, manifest, played)
