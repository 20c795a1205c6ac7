"""A training by the local trainer, from its settings to its last checkpoint: what it opens and keeps.

The folder belongs to one training: `settings.json` says which, and a resumed one must be the same.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch

from rollout.errors import UsageError
from rollout.store import lock_folder
from rollout.types import JsonObject
from suites.command.options import Forced
from train.engine import PolicyEngine
from train.local.checkpoint import Checkpoints, restore
from train.local.engine import LocalEngine, load_model
from train.local.rules import GrpoRules
from train.local.trainer import Trainer, Watcher
from train.local.update import Updater
from train.mix import HarnessSpec
from train.policy import PolicyUpstream
from train.runs import ReadyHarness, Source
from train.settings import changes, note, noted

__all__ = ["LocalRun"]

SETTINGS = "settings.json"


@dataclass(frozen=True)
class LocalRun:
    """What is trained on what, in which harnesses, and how."""

    model: str
    """The initial checkpoint."""
    folder: Path
    """Where all of it is kept."""
    suite: str
    """The tasks that are trained on: `NAME`, or `"NAME --option ..."`."""
    mix: tuple[HarnessSpec, ...]
    rules: GrpoRules = field(default_factory=GrpoRules)
    evaluation: str = ""
    """The held-out tasks, likewise; empty where there are none."""
    steps: int = 100
    eval_every: int = 0
    """Steps between evaluations; 0: only before training and after it."""
    max_tokens: int = 1024
    """Of one reply."""
    concurrency: int = 32
    """Episodes under way at once."""
    sandbox: str = "auto"
    engine: Literal["torch", "vllm"] = "torch"
    """What samples."""
    engine_memory: float = 0.4
    """vLLM's share of the GPU: the trainer's weights and optimizer stay beside it."""

    @property
    def settings(self) -> JsonObject:
        """What decides where the training leads."""
        return {
            "model": self.model,
            "suite": self.suite,
            "evaluation": self.evaluation,
            "harnesses": [msgspec.to_builtins(spec) for spec in self.mix],
            "max_tokens": self.max_tokens,
            # The same seed draws other tokens in another engine: that would be another run.
            "engine": self.engine,
            **msgspec.to_builtins(self.rules),
        }

    async def train(self, *, resume: bool = False, watcher: Watcher | None = None) -> Path:
        """Train, or go on with what the folder holds; the last checkpoint.

        Raises UsageError for what can't work, where the folder holds a training with other settings, or
        one that another process is at.
        """
        self._need_engine()
        with _locked(self.folder):
            self._compare(resume)
            checkpoint = Checkpoints(self.folder / "checkpoints").latest()
            model, tokenizer, optimizer = self._load(checkpoint)
            engine = self._engine(model, tokenizer)
            try:
                async with self._harnesses(engine) as harnesses:
                    note(self.folder / SETTINGS, self.settings)
                    reference = load_model(self.model)[0] if self.rules.kl else None
                    trainer = Trainer(
                        engine,
                        Updater(engine.model, optimizer, self.rules, reference),
                        self.rules,
                        self.folder,
                        step=int(checkpoint.name) if checkpoint else 0,
                        concurrency=self.concurrency,
                        watcher=watcher or Watcher(),
                    )
                    await trainer.train(harnesses, self.steps, eval_every=self.eval_every)
            finally:
                engine.close()
        return trainer.checkpoints.latest() or Path(self.model)

    async def check(self) -> list[str]:
        """Open all that training would; a line for each harness. Raises UsageError."""
        self._need_engine()
        engine = self._engine(*load_model(self.model))
        try:
            async with self._harnesses(engine) as harnesses:
                return [
                    f"{one.spec.name}: {len(one.tasks)} tasks,"
                    f" {len(one.held_out.tasks) if one.held_out else 0} held out"
                    for one in harnesses
                ]
        finally:
            engine.close()

    def _compare(self, resume: bool) -> None:
        """See that this is the training that the folder holds, if it holds any."""
        if (old := noted(self.folder / SETTINGS)) is None:
            return
        if not resume:
            raise UsageError(
                f"{self.folder} holds a training: add --resume, or choose another --out"
            )
        if changed := changes(old, self.settings):
            told = ", ".join(f"{name} was {old.get(name)!r}" for name in changed[:5])
            raise UsageError(f"{self.folder}: can't be resumed with other settings: {told}")

    def _load(self, checkpoint: Path | None) -> tuple[Any, Any, torch.optim.Optimizer]:
        """Model, tokenizer and optimizer, from a checkpoint where there is one."""
        try:
            model, tokenizer = load_model(str(checkpoint or self.model))
            optimizer = torch.optim.AdamW(
                model.parameters(),
                lr=self.rules.learning_rate,
                weight_decay=self.rules.weight_decay,
                foreach=False,
            )
            if checkpoint is not None:
                restore(optimizer, checkpoint)
        except UsageError as error:
            if checkpoint is None:
                raise
            raise UsageError(
                f"{error}; remove {checkpoint} to resume from the one before"
            ) from error
        return model, tokenizer, optimizer

    def _need_engine(self) -> None:
        """Miss a package before a model is loaded in vain."""
        if self.engine == "vllm":
            from train.local.vllm_engine import import_vllm

            import_vllm()

    def _engine(self, model: Any, tokenizer: Any) -> PolicyEngine:
        if self.engine == "torch":
            return LocalEngine(model, tokenizer, slots=self.concurrency)
        from train.local.vllm_engine import VLLMEngine

        return VLLMEngine(model, tokenizer, slots=self.concurrency, memory=self.engine_memory)

    @asynccontextmanager
    async def _harnesses(self, engine: PolicyEngine) -> AsyncIterator[list[ReadyHarness]]:
        """Every harness with the tasks to train on and those that are held out."""
        policy = PolicyUpstream(
            engine, engine.tokenizer, model="policy", context_window=engine.context_window
        )
        async with AsyncExitStack() as stack:
            ready = []
            for spec in self.mix:
                forced: Forced = {
                    **spec.options,
                    "temperature": self.rules.temperature,
                    "max_tokens": self.max_tokens,
                    "sandbox": self.sandbox,
                }
                source = Source.parse(self.suite, forced=forced)
                setup = await stack.enter_async_context(source.open(policy))
                held_out = None
                if self.evaluation:
                    held_out = Source.parse(self.evaluation, forced=forced).ready(spec, setup)
                ready.append(replace(source.ready(spec, setup), held_out=held_out))
            yield ready


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two trainers in one folder would spoil each other's work. Raises UsageError for the second."""
    lock = lock_folder(folder)
    try:
        yield
    finally:
        os.close(lock)
