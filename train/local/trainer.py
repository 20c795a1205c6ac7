"""GRPO for models that fit into this process: rollouts, credit, update, checkpoint, in turns.

One step: `batch` tasks are attempted `group` times each, by the weights of now, through the real harness,
gateway and environment; the attempts become samples and credit as they do for any trainer
(`train.samples`, `train.credit`); the weights are updated; a checkpoint is written.

Everything random follows from the seed and the step (tasks, harnesses, worlds, every sampled token), and
the episodes of a step are on the disk before they are trained on. So a run that was killed, at whatever
moment, goes on from its last checkpoint with the episodes that it already has, as if nothing had been.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rollout.runner import Observer, RunnerStopped
from rollout.statistics import mean, summarise
from rollout.types import Episode, JsonObject, Outcome, Task, Trace
from train.batches import epoch_batch
from train.credit import assign
from train.engine import PolicyEngine
from train.local.checkpoint import Checkpoints, MetricsFile
from train.local.rules import GrpoRules
from train.local.update import Updater
from train.mix import HarnessSpec, draw
from train.rows import RlRow, rl_rows
from train.runs import Attempts, ReadyHarness, attempts
from train.samples import Report, build_samples
from train.tally import Tally

__all__ = ["Trainer", "Watcher"]


class Watcher(Observer):
    """Is told how training goes; does nothing by default."""

    def begun(self, step: int) -> None:
        """Training goes on after this many steps."""

    def stepped(self, step: int, values: JsonObject) -> None:
        """A step was trained, and is in the metrics."""

    def evaluated(self, step: int, values: JsonObject) -> None:
        """Held-out tasks were attempted."""


class Played(NamedTuple):
    """An episode, and the harness that it was played in."""

    spec: HarnessSpec
    episode: Episode
    trace: Trace


@dataclass
class Trainer:
    """Holds the policy that is trained. `step` is how many updates it has behind it."""

    engine: PolicyEngine
    updater: Updater
    rules: GrpoRules
    folder: Path
    step: int = 0
    concurrency: int = 32
    watcher: Watcher = field(default_factory=Watcher)

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(self.folder / "checkpoints")
        self.metrics = MetricsFile(self.folder, self.step)
        self.engine.version = str(self.step)

    async def train(
        self, harnesses: Sequence[ReadyHarness], steps: int, *, eval_every: int = 0, k: int = 3
    ) -> None:
        """Train until `steps` updates are done. All harnesses must have the same tasks.

        Held-out tasks are evaluated before, at the end, and every `eval_every` steps where it is not 0.
        """
        self.watcher.begun(self.step)
        held_out = any(harness.held_out for harness in harnesses)
        while True:
            last = self.step >= steps
            due = self.step == 0 or last or (eval_every and self.step % eval_every == 0)
            # The end of a run that goes on: its metrics are written again.
            due = due or self._evaluations(self.step).exists()
            if held_out and due:
                await self.evaluate(harnesses, k)
            if last:
                return
            await self.advance(harnesses)
            self.checkpoints.save(
                self.step, self.engine.model, self.engine.tokenizer, self.updater.optimizer
            )

    async def advance(self, harnesses: Sequence[ReadyHarness]) -> None:
        """One step."""
        begin = time.perf_counter()
        played = await self._play(harnesses)
        _require_lessons(self.step, [one.episode for one in played])
        rolled = time.perf_counter()
        rows, values = self._rows(played)
        async with self.engine.updating(str(self.step + 1)):
            values |= self.updater.update(rows, self.step)
        values |= {
            "time/rollout": rolled - begin,
            "time/update": time.perf_counter() - rolled,
        }
        self.metrics.write(self.step, values)
        self.step += 1
        self.watcher.stepped(self.step, values)

    async def evaluate(self, harnesses: Sequence[ReadyHarness], k: int) -> None:
        """pass^k of the held-out tasks, in each harness."""
        values: JsonObject = {}
        for harness in harnesses:
            if harness.held_out is None:
                continue
            folder = self._evaluations(self.step) / harness.spec.folder
            tasks = list(harness.held_out.tasks.values())
            played = await self._attempts(harness.held_out, tasks, k, folder, seed=0)
            values |= _held_out(harness.spec, [episode for episode, _ in played], k)
        self.metrics.write(self.step, values)
        self.watcher.evaluated(self.step, values)

    def _evaluations(self, step: int) -> Path:
        return self.folder / "evals" / f"{step:06d}"

    async def _play(self, harnesses: Sequence[ReadyHarness]) -> list[Played]:
        """This step's episodes, in the order of their tasks."""
        rules, step = self.rules, self.step
        drawn = draw([harness.spec for harness in harnesses], rules.batch, f"{rules.seed}/{step}")
        ids = list(harnesses[0].tasks)
        numbers = epoch_batch(len(ids), rules.batch, step, f"{rules.seed}/epoch ")
        # A task that comes twice in one step would make one group of two.
        lots = dict(zip((ids[n] for n in numbers), drawn, strict=False))

        async def play(harness: ReadyHarness) -> list[Played]:
            tasks = [harness.tasks[task] for task, spec in lots.items() if spec == harness.spec]
            folder = self.folder / "rollouts" / f"{step:06d}" / harness.spec.folder
            seed = rules.seed * 1_000_003 + step
            got = (
                await self._attempts(harness, tasks, rules.group, folder, seed=seed)
                if tasks
                else []
            )
            return [Played(harness.spec, *one) for one in got]

        return [one for told in await asyncio.gather(*map(play, harnesses)) for one in told]

    async def _attempts(
        self, harness: ReadyHarness, tasks: Sequence[Task], n: int, folder: Path, *, seed: int
    ) -> Attempts:
        return await attempts(
            harness,
            tasks,
            n,
            folder,
            concurrency=self.concurrency,
            seed=seed,
            model=f"policy@{self.step}",
            observer=self.watcher,
        )

    def _rows(self, played: Sequence[Played]) -> tuple[list[RlRow], JsonObject]:
        """Samples with their credit, and what is to be told of the episodes."""
        credits, credited = assign([one.episode for one in played], self.rules.credit)
        report, rows = Report(), []
        for one in played:
            credit = credits.get(one.episode.id)
            if credit is None or not credit.trained:
                continue
            samples, told = build_samples(one.episode, one.trace, self.rules.samples)
            report.add(told)
            rows += rl_rows(samples, credit)
        values = _told(played) | {
            "groups/zero_variance": credited.zero_variance,
            "groups/too_small": credited.too_small,
            "episodes/trained": credited.trained,
            "tokens/trained": report.trained,
            "tokens/untrained": report.untrained,
            "rows": len(rows),
            "staleness": self._staleness(rows),
        }
        return rows, values

    def _staleness(self, rows: Sequence[RlRow]) -> float:
        """Updates between the weights that sampled a call and those that are trained, on average."""
        versions = [int(version) for row in rows for version in row.step_weights if version]
        return self.step - mean(versions) if versions else 0.0


def _require_lessons(step: int, episodes: Sequence[Episode]) -> None:
    """See that there is something to learn from. Raises RunnerStopped.

    There is nothing in episodes that the infrastructure failed, nor where the policy had no say: a prompt
    that does not fit into its context window, for instance.
    """
    errors = (Outcome.INFRA_ERROR, Outcome.JUDGE_ERROR)
    if all(one.outcome in errors or not one.usage.completion for one in episodes):
        last = episodes[-1]
        raise RunnerStopped(
            f"step {step}: none of its {len(episodes)} episodes was graded, or holds a token of the "
            f"policy; the last one: {last.cause}: {last.reason}"
        )


def _told(played: Sequence[Played]) -> JsonObject:
    """What the episodes came to: all, and by harness where there are several."""
    tally = Tally()
    tally.add(one.episode for one in played)
    names = {one.spec.name for one in played}
    for name in sorted(names) if len(names) > 1 else ():
        tally.add((one.episode for one in played if one.spec.name == name), name)
    return tally.values()


def _held_out(spec: HarnessSpec, episodes: Sequence[Episode], k: int) -> JsonObject:
    values: JsonObject = {}
    for name, figure in summarise(episodes, k).rates.named(k).items():
        if figure is not None:
            values[f"held_out/{spec.name}/{name}"] = figure.value
            values[f"held_out/{spec.name}/{name}/low"] = figure.low
            values[f"held_out/{spec.name}/{name}/high"] = figure.high
    return values
