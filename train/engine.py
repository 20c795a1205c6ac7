"""The contract of an inference engine that takes token ids and gives token ids.

`train.policy` makes a model server of one: it renders a chat request with the model's template, asks the
engine, and reads thoughts and tool calls out of what was sampled. No text is ever tokenized twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

__all__ = ["Engine", "PolicyEngine", "Sampled", "SamplingParams"]


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are drawn."""

    max_tokens: int
    """New tokens at most."""
    temperature: float = 1.0
    """0 takes the likeliest token."""
    top_p: float = 1.0
    top_k: int = 0
    """0 is all."""
    seed: int | None = None


@dataclass(frozen=True)
class Sampled:
    """What an engine sampled."""

    ids: Sequence[int]
    """The end-of-turn token included, where it was sampled."""
    logprobs: Sequence[float]
    """Natural log-probability of each of `ids` under the distribution that was sampled from."""
    finish: Literal["stop", "length", "abort"]
    """`abort`: the weights are being replaced; ask again."""
    weights: str = ""
    """Version of the weights that sampled the last token."""


class Engine(Protocol):
    """Samples continuations; calls run concurrently."""

    async def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        request: str,
        images: Sequence[bytes] = (),
    ) -> Sampled:
        """Continue a prompt. `request` is the same for all calls of an episode, for prefix caches.

        Raises Transient (rollout.gateway.upstream) where asking again may help.
        """
        ...


class PolicyEngine(Engine, Protocol):
    """What the local trainer asks of an engine that samples from the policy that it trains."""

    model: Any
    """transformers' causal language model: the weights that are trained."""
    tokenizer: Any
    context_window: int
    """Tokens, of a prompt and its continuation."""
    version: str
    """Of the weights that are sampled from."""

    def updating(self, version: str) -> AbstractAsyncContextManager[None]:
        """The weights of `model` may change inside; afterwards they are sampled from, as `version`.

        Calls under way end with `abort`, and nothing of the old weights is cached any more.
        """
        ...

    def close(self) -> None:
        """End what the engine runs on."""
        ...
