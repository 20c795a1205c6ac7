"""An inference engine in this process, for models that fit: torch, transformers, one CPU or GPU.

A thread decodes all calls together, one token each a step; calls join and leave between steps, and what
an episode's next call shares with its last one is not computed again. It samples from the very weights
that the trainer holds, so a weight update copies nothing.

transformers' own continuous batching (`generate_batch`, 5.10) does run on a CPU, but it has one random
stream and one temperature for all requests, so a call's tokens depend on who else is served, and a
resumed run can't be the same run; and it was ten times slower there than a plain batch (32 prompts of 400
tokens, 30 new ones: 4.0 s against 0.5 s, 0.9 M parameters, two cores).
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import torch

from rollout.errors import ModelError, UsageError
from train.engine import Sampled, SamplingParams
from train.local.cache import SlotCache
from train.local.sampling import draw

__all__ = ["LocalEngine", "load_model", "stop_ids"]

SLOTS = 32


@dataclass(eq=False)
class _Call:
    """One call of `generate` on its way."""

    prompt: list[int]
    params: SamplingParams
    request: str
    future: asyncio.Future[Sampled]
    random: random.Random
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    slot: int = -1

    def end(
        self,
        finish: Literal["stop", "length", "abort"],
        weights: str,
        fault: ModelError | None = None,
    ) -> None:
        """Resolve the future, from the engine's thread."""
        sampled = Sampled(self.ids, self.logprobs, finish, weights)

        def resolve() -> None:
            if self.future.done():
                return
            if fault is not None:
                self.future.set_exception(fault)
            else:
                self.future.set_result(sampled)

        self.future.get_loop().call_soon_threadsafe(resolve)


@dataclass(eq=False)
class _Slot:
    """A row of the cache: whose tokens it holds."""

    owner: str = ""
    ids: list[int] = field(default_factory=list)
    busy: bool = False
    used: int = 0
    """When, in steps."""


class LocalEngine:
    """Implements `train.engine.PolicyEngine`. Close it to end its thread."""

    def __init__(
        self, model: Any, tokenizer: Any, *, slots: int = SLOTS, version: str = "0"
    ) -> None:
        """`slots` is how many calls are decoded at once."""
        self.model = model
        self.tokenizer = tokenizer
        self.context_window: int = model.config.max_position_embeddings
        self.version = version
        self._cache = SlotCache(model, slots)
        self._slots = [_Slot() for _ in range(slots)]
        self._stops = stop_ids(model, tokenizer)
        self._waiting: list[_Call] = []
        self._running: list[_Call] = []
        self._steps = 0
        self._news = threading.Condition()
        self._weights = threading.Lock()
        self._closed = False
        self._fault: ModelError | None = None
        self._thread: threading.Thread | None = None

    @classmethod
    def load(cls, path: str, *, slots: int = SLOTS) -> Self:
        """From a checkpoint's folder. Raises UsageError where it holds no model."""
        return cls(*load_model(path), slots=slots)

    async def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        request: str,
        images: Sequence[bytes] = (),
    ) -> Sampled:
        """Continue a prompt. Raises ModelError once the engine has failed or was closed."""
        if images:
            raise ModelError("the local engine serves text models alone: no pictures")
        future: asyncio.Future[Sampled] = asyncio.get_running_loop().create_future()
        call = _Call(list(prompt_ids), params, request, future, random.Random(params.seed))
        with self._news:
            if self._closed:
                raise self._fault or ModelError("the local engine is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="engine", daemon=True)
                self._thread.start()
            self._waiting.append(call)
            self._news.notify()
        return await future

    @asynccontextmanager
    async def updating(self, version: str) -> AsyncIterator[None]:
        """Change the weights inside. Calls under way end with `abort`; nothing is cached any more."""
        with self._weights:
            yield
            self.version = version
            for call in self._running:
                self._release(call)
                call.end("abort", version)
            self._running = []
            for slot in self._slots:
                slot.ids = []

    def close(self) -> None:
        """End the thread; calls under way are aborted."""
        with self._news:
            self._closed = True
            self._news.notify()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        """The thread: until closed, a step for all calls, then those that came meanwhile."""
        try:
            while self._wait():
                with self._weights, torch.inference_mode():
                    self._step()
        except Exception as error:
            self._fault = ModelError(f"the local engine failed: {type(error).__name__}: {error}")
            self._fault.__cause__ = error
        finally:
            with self._news:
                self._closed = True
                left = [*self._running, *self._waiting]
            for call in left:
                call.end("abort", self.version, self._fault)

    def _wait(self) -> bool:
        with self._news:
            while not (self._closed or self._waiting or self._running):
                self._news.wait()
            return not self._closed

    def _step(self) -> None:
        self._steps += 1
        for call in [call for call in self._running if call.future.cancelled()]:
            self._running.remove(call)
            self._release(call)
        going, joined = list(self._running), self._admit()
        # Among those that run from here on: whoever fails with the step must be told.
        self._running = [*going, *joined]
        if joined:
            self._prefill(joined)
        if going:
            rows = [
                (call.slot, call.ids[-1:], len(call.prompt) + len(call.ids) - 1) for call in going
            ]
            for call in going:
                self._slots[call.slot].ids.append(call.ids[-1])
            self._take(going, self._cache.forward(rows))
        self._running = [call for call in self._running if not self._ended(call)]

    def _admit(self) -> list[_Call]:
        """Give waiting calls a slot each, as long as there are free ones."""
        with self._news:
            waiting, self._waiting = self._waiting, []
        joined = []
        for call in waiting:
            if call.future.cancelled():
                continue
            free = [number for number, slot in enumerate(self._slots) if not slot.busy]
            if not free:
                with self._news:
                    self._waiting.append(call)
                continue
            own = [number for number in free if self._slots[number].owner == call.request]
            call.slot = (own or [min(free, key=lambda n: self._slots[n].used)])[0]
            self._slots[call.slot].busy = True
            joined.append(call)
        return joined

    def _prefill(self, calls: list[_Call]) -> None:
        """Compute what a slot does not hold yet of each prompt: at least its last token."""
        rows = []
        for call in calls:
            slot = self._slots[call.slot]
            kept = min(_shared(slot.ids, call.prompt), len(call.prompt) - 1)
            rows.append((call.slot, call.prompt[kept:], kept))
            slot.owner, slot.ids = call.request, list(call.prompt)
        self._take(calls, self._cache.forward(rows))

    def _take(self, calls: Sequence[_Call], logits: torch.Tensor) -> None:
        """Draw the next token of each call."""
        drawn = draw(logits, [call.params for call in calls], [c.random.random() for c in calls])
        if not all(map(math.isfinite, drawn[1])):
            raise ArithmeticError("the model's logits are not finite: its weights are damaged")
        for call, token, logprob in zip(calls, *drawn, strict=True):
            call.ids.append(token)
            call.logprobs.append(logprob)

    def _ended(self, call: _Call) -> bool:
        stopped = call.ids[-1] in self._stops
        if not stopped and len(call.ids) < call.params.max_tokens:
            return False
        self._release(call)
        call.end("stop" if stopped else "length", self.version)
        return True

    def _release(self, call: _Call) -> None:
        slot = self._slots[call.slot]
        slot.busy, slot.used = False, self._steps


def load_model(path: str) -> tuple[Any, Any]:
    """A causal language model and its tokenizer. Raises UsageError where the folder holds none."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    if not (Path(path) / "config.json").is_file():
        raise UsageError(f"--model {path}: no config.json there; name the folder of a checkpoint")
    logging.disable_progress_bar()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        model, told = AutoModelForCausalLM.from_pretrained(
            path, dtype=torch.float32, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(path)
    except Exception as error:  # each kind of file that may be damaged has errors of its own
        raise UsageError(f"--model {path}: {_first_line(error)}") from error
    if wrong := _incomplete(model, tokenizer, told["missing_keys"]):
        raise UsageError(f"--model {path}: {wrong}")
    return model.to(device).eval(), tokenizer


def _incomplete(model: Any, tokenizer: Any, missing: Collection[str]) -> str:
    """What transformers makes up for with something else, or lets pass; empty for nothing."""
    if missing:
        return f"its files lack {len(missing)} of the weights, {min(missing)} for instance"
    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            return (
                f"its weights {name} are not finite: a training went astray, or a file is damaged"
            )
    try:
        ids = tokenizer.apply_chat_template([{"role": "user", "content": "1"}], return_dict=False)
    except Exception as error:
        return f"its chat template can't be used: {_first_line(error)}"
    if not ids:
        return "its tokenizer knows no words: the files are missing"
    return ""


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def stop_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a turn."""
    told = model.generation_config.eos_token_id
    ids = told if isinstance(told, list) else [told]
    return frozenset(number for number in (*ids, tokenizer.eos_token_id) if number is not None)


def _shared(cached: Sequence[int], prompt: Sequence[int]) -> int:
    pairs = zip(cached, prompt, strict=False)
    different = (i for i, (one, other) in enumerate(pairs) if one != other)
    return next(different, min(len(cached), len(prompt)))
