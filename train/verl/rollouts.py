"""One of verl's rollout workers: groups of episodes of any suite under any harness, as rows.

A Ray actor of `Rollouts` is asked for prompts, answers at once, and writes each group into TransferQueue
when it is complete. A group of which fewer than two episodes survive is reported as `failure`, so that
verl's replay buffer draws another prompt in its place (always in the async modes; in `sync` with
`trainer.v1.sampler.sync_refill_failed_groups`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import transfer_queue
from omegaconf import DictConfig, OmegaConf
from tensordict import TensorDict
from tensordict.tensorclass import NonTensorData
from verl.experimental.agent_loop import AgentLoopOutput, AgentLoopWorker
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from rollout.errors import RolloutError, UsageError
from rollout.held import HeldFolder
from rollout.runner import Runner, RunnerStopped
from rollout.store import EpisodeStore
from rollout.types import Episode, Group, Outcome, Task
from train.credit import Credit, assign
from train.gate import Gate
from train.mix import HarnessSpec
from train.policy import PolicyUpstream
from train.runs import ReadyHarness, open_store
from train.samples import Sample, build_samples
from train.tally import Tally
from train.verl.engine import VerlEngine
from train.verl.rows import TqRow, outputs, tq_row
from train.verl.settings import Settings
from train.verl.vision import VisionTokenizer

__all__ = ["HarnessPool", "Rollouts", "Sampling"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn, whatever the harness asks for."""

    temperature: float
    top_p: float
    top_k: int

    @classmethod
    def read(cls, told: Any) -> Sampling:
        """From a section of verl's config, or from what an agent loop is given."""
        return cls(float(told["temperature"]), float(told["top_p"]), int(told["top_k"]))


class HarnessPool:
    """The harnesses of one process, each opened when it is first asked for."""

    def __init__(self, config: DictConfig, client: Any, tokenizer: Any, processor: Any) -> None:
        self.rollout = config.actor_rollout_ref.rollout
        self.settings = Settings.read(OmegaConf.to_container(config.anyharness, resolve=True))
        self.gate = Gate()
        self._client = client
        self._ends = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
        self._tokenizer = tokenizer if processor is None else VisionTokenizer(processor)
        self._template = OmegaConf.to_container(config.data.apply_chat_template_kwargs)
        self._ready: dict[tuple[str, HarnessSpec, Sampling], asyncio.Task[ReadyHarness]] = {}
        self._opened = AsyncExitStack()

    @property
    def window(self) -> int:
        """Tokens of a prompt and its reply, and of a row, at most."""
        lengths = self.rollout.prompt_length + self.rollout.response_length
        return int(self.rollout.max_model_len or lengths)

    async def open(self, suite: str, spec: HarnessSpec, sampling: Sampling) -> ReadyHarness:
        """A harness with a suite's tasks and verl's policy. Raises UsageError for what can't work."""
        key = suite, spec, sampling
        known = self._ready.get(key)
        # What failed may work the next time: a judge's server that was away, for instance.
        if known is None or (known.done() and (known.cancelled() or known.exception())):
            known = self._ready[key] = asyncio.create_task(self._open(*key))
        return await asyncio.shield(known)

    async def close(self) -> None:
        """Close what was opened."""
        await self._opened.aclose()

    async def _open(self, suite: str, spec: HarnessSpec, sampling: Sampling) -> ReadyHarness:
        engine = VerlEngine(self._client, self.gate, ends=self._ends, top_k=sampling.top_k)
        policy = PolicyUpstream(
            engine, self._tokenizer, context_window=self.window, template=self._template
        )
        source = self.settings.source(
            suite, spec, temperature=sampling.temperature, top_p=sampling.top_p
        )
        setup = await self._opened.enter_async_context(source.open(policy))
        settings = self.settings
        limits = replace(setup.limits, memory_mb=settings.memory_mb, cpus=settings.cpus)
        setup = replace(setup, limits=limits, paused=self.gate.seconds)
        return source.ready(spec, setup)


class Rollouts:
    """Runs prompts and writes their rows. All methods but the first are for the manager."""

    def __init__(
        self,
        config: DictConfig,
        llm_client: Any,
        teacher_client: Any = None,
        reward_loop_worker_handles: Any = None,
    ) -> None:
        self._worker = AgentLoopWorker(
            config, llm_client, teacher_client, reward_loop_worker_handles
        )
        self._pool = HarnessPool(config, llm_client, self._worker.tokenizer, self._worker.processor)
        self._settings = self._pool.settings
        self._slots = asyncio.Semaphore(self._settings.concurrency)
        self._running: set[asyncio.Task[None]] = set()
        self._tally = Tally()
        self._lost = 0
        self._fatal = ""
        transfer_queue.init()

    async def generate_sequences(self, batch: TensorDict) -> None:
        """Start on a batch of prompts, and return. Raises UsageError once nothing works any more."""
        if self._fatal:
            raise UsageError(self._fatal)
        validate = bool(_plain(batch["validate"])) if "validate" in batch else False
        for row in range(len(batch)):
            prompt = {
                name: _plain(value if isinstance(value, NonTensorData) else value[row])
                for name, value in batch.items()
                if name != "validate"
            }
            task = asyncio.create_task(self._prompt(prompt, validate))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def hold(self) -> None:
        """Hold model calls back: the engine is about to sleep."""
        self._pool.gate.close()

    async def release(self) -> None:
        """Let them go again."""
        self._pool.gate.open()

    async def drain(self) -> None:
        """Return when nothing is under way."""
        while self._running:
            await asyncio.wait(self._running)

    async def tally(self) -> Tally:
        """What became of episodes and groups since the last time."""
        told, self._tally = self._tally, Tally()
        return told

    async def close(self) -> None:
        """Abandon what is under way and close environments."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._pool.close()

    async def _prompt(self, prompt: dict[str, Any], validate: bool) -> None:
        """One group, from its prompt to its rows and its status."""
        uid, partition = prompt["uid"], "val" if validate else "train"
        await _mark(uid, partition, "running")
        try:
            if "_" in uid:
                raise UsageError(f"uid {uid!r}: verl's keys have no room for '_' in it; use a UUID")
            rows, graded = await self._rows(prompt, validate)
            if rows:
                await _write(rows, partition)
        except Exception as error:
            logger.exception("group %s", uid)
            self._tally.counts["groups/failed"] += 1
            self._fatal = self._fatal or (str(error) if isinstance(error, UsageError) else "")
            rows, graded = [], False
        self._watch(graded)
        await _mark(uid, partition, "finished" if rows or validate else "failure")

    def _watch(self, graded: bool) -> None:
        self._lost = 0 if graded else self._lost + 1
        if self._lost >= self._settings.give_up_after:
            self._fatal = self._fatal or (
                f"{self._lost} groups in a row without a single grade: {dict(self._tally.counts)}"
            )

    async def _rows(self, prompt: dict[str, Any], validate: bool) -> tuple[list[TqRow], bool]:
        """A group's rows, and whether any of its episodes was graded."""
        told = self._pool.rollout
        drawn = told.val_kwargs if validate else told
        n = prompt.pop("__rollout_n__", drawn.n)
        spec = self._settings.drawn(prompt, int(prompt["global_steps"]))
        harness = await self._pool.open(prompt["suite"], spec, Sampling.read(drawn))
        if prompt["task"] not in harness.tasks:
            raise RolloutError(f"{prompt['suite']}: task {prompt['task']!r} can't be run here")
        task, step = harness.tasks[prompt["task"]], int(prompt["global_steps"])
        manifest = harness.describe([task], int(n), step, f"policy@{step}")
        with self._folder() as folder, open_store(folder / prompt["uid"], manifest) as store:
            group = await self._group(harness, task, int(n), store, prompt)
            if not validate:
                self._count(group.episodes, spec)
            rows = await asyncio.to_thread(self._built, group, store, prompt, validate)
            return rows, any(episode.outcome.graded for episode in group.episodes)

    def _folder(self) -> AbstractContextManager[Path]:
        """Where a group's run is kept: for good, or until its rows are made."""
        if self._settings.out:
            return nullcontext(Path(self._settings.out))
        return HeldFolder.temporary("anyharness-group-")

    async def _group(
        self, harness: ReadyHarness, task: Task, n: int, store: EpisodeStore, prompt: dict[str, Any]
    ) -> Group:
        """The attempts. Seeds differ between steps: each time, the same task is another draw."""
        tries = n * (self._settings.retries + 1)
        runner = Runner(
            harness.setup,
            store=store,
            retries=self._settings.retries,
            give_up_after=tries + 1,  # never: `_watch` sees more than one group
            seed=int(prompt["global_steps"]),
            slots=self._slots,
        )
        async for group in runner.groups([task], n):
            return group
        raise RunnerStopped(f"no group of task {task.id!r}")

    def _count(self, episodes: Sequence[Episode], spec: HarnessSpec) -> None:
        """A training group's episodes: among all, and by harness where there are several."""
        self._tally.add(episodes)
        if len(self._settings.mix) > 1:
            self._tally.add(episodes, spec.name)

    def _built(
        self, group: Group, store: EpisodeStore, prompt: dict[str, Any], validate: bool
    ) -> list[TqRow]:
        """The rows of the episodes that count."""
        samples = self._samples(group.episodes, store)
        credits = self._credits(group.episodes, samples, validate)
        rows = []
        for episode in group.episodes:
            if episode.id in credits:
                said = self._outputs(episode, store, samples[episode.id], credits, prompt)
                rows += [
                    tq_row(self._worker, output, prompt, episode.attempt, index)
                    for index, output in enumerate(said)
                ]
        return rows

    def _outputs(
        self,
        episode: Episode,
        store: EpisodeStore,
        samples: Sequence[Sample],
        credits: dict[str, Credit],
        prompt: dict[str, Any],
    ) -> list[AgentLoopOutput]:
        return outputs(
            episode,
            store.trace(episode),
            samples,
            credits[episode.id],
            # Step s is sampled with the weights that step s - 1 left behind.
            version=max(int(prompt["global_steps"]) - 1, 0),
            anchors=self._settings.gigpo > 0,
        )

    def _samples(self, episodes: Sequence[Episode], store: EpisodeStore) -> dict[str, list[Sample]]:
        """Of the episodes that have any tokens to show."""
        rules = self._settings.samples(self._pool.window)
        told = {one.id: build_samples(one, store.trace(one), rules)[0] for one in episodes}
        return {name: samples for name, samples in told.items() if samples}

    def _credits(
        self, episodes: Sequence[Episode], samples: dict[str, list[Sample]], validate: bool
    ) -> dict[str, Credit]:
        there = [episode for episode in episodes if episode.id in samples]
        if validate:
            return {one.id: _score(one) for one in there if one.outcome.graded}
        credits, report = assign(there, self._settings.credit)
        self._tally.counts["groups/too_small"] += report.too_small
        self._tally.counts["groups/zero_variance"] += report.zero_variance
        self._tally.counts["trained"] += report.trained
        return credits


def _score(episode: Episode) -> Credit:
    """What validation reports: the reward is whether it passed."""
    return Credit(reward=float(episode.outcome is Outcome.PASSED), advantage=0.0)


def _plain(value: Any) -> Any:
    """What a TensorDict holds of something that is no tensor."""
    value = getattr(value, "data", value) if isinstance(value, NonTensorData) else value
    return value.item() if getattr(value, "ndim", None) == 0 else value


async def _mark(uid: str, partition: str, status: str) -> None:
    await transfer_queue.async_kv_put(key=uid, partition_id=partition, tag={"status": status})


async def _write(rows: Sequence[TqRow], partition: str) -> None:
    await transfer_queue.async_kv_batch_put(
        keys=[row.key for row in rows],
        fields=list_of_dict_to_tensordict([row.fields for row in rows]),
        tags=[row.tag for row in rows],
        partition_id=partition,
    )
