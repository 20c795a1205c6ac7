"""verl's inference servers as an engine (verl/workers/rollout/llm_server.py, 0.9.1).

Token ids go in, token ids come out, over the Ray client and not over HTTP: only there does verl handle
weight updates. What an update cuts off is asked again, under the new weights.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rollout.gateway.upstream import Transient
from rollout.text import one_line
from train.engine import Sampled, SamplingParams
from train.gate import Gate
from train.verl.vision import decode_image

__all__ = ["VerlEngine"]

ABORTED = ("abort", "aborted")


class VerlEngine:
    """Samples from verl's servers, through the client that a manager is handed."""

    def __init__(
        self,
        client: Any,
        gate: Gate,
        *,
        ends: Sequence[int] = (),
        top_k: int = -1,
        pause: float = 1.0,
    ) -> None:
        """`ends` are the tokens that end a reply, `top_k` that of calls which name none.

        `pause` is between an abort and asking again, seconds.
        """
        self._client = client
        self._gate = gate
        self._ends = frozenset(ends)
        self._top_k = top_k
        self._pause = pause

    async def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        request: str,
        images: Sequence[bytes] = (),
    ) -> Sampled:
        """Ask until nothing cuts the reply off. Raises Transient where a server fails.

        The seed is left out: a seed per request slows vLLM down. verl's `rollout.seed` is the servers'.
        """
        pictures = await asyncio.to_thread(lambda: list(map(decode_image, images))) or None
        while True:
            await self._gate.wait()
            told = await self._ask(list(prompt_ids), params, request, pictures)
            if told.stop_reason not in ABORTED:
                return self._sampled(told, params)
            await asyncio.sleep(self._pause)

    async def _ask(
        self, prompt: list[int], params: SamplingParams, request: str, images: Any
    ) -> Any:
        sampling = {
            "temperature": params.temperature,
            "top_p": params.top_p,
            "top_k": params.top_k or self._top_k,
            "repetition_penalty": 1.0,
            "logprobs": True,
            "max_tokens": params.max_tokens,
        }
        try:
            return await self._client.generate(
                request_id=request, prompt_ids=prompt, sampling_params=sampling, image_data=images
            )
        except Exception as error:
            # Ray wraps whatever a server died of; a prompt that is too long was refused before.
            raise Transient(one_line(f"verl: {type(error).__name__}: {error}")) from error

    def _sampled(self, told: Any, params: SamplingParams) -> Sampled:
        ids = list(told.token_ids)
        # verl says `completed` of both.
        cut = len(ids) >= params.max_tokens and ids[-1] not in self._ends
        return Sampled(
            ids=ids,
            logprobs=list(told.log_probs or ()),
            finish="length" if cut else "stop",
            weights=_weights(told.extra_fields),
        )


def _weights(told: dict[str, Any]) -> str:
    """The versions that sampled a reply: `3`, or `3-4` where it went on over an update."""
    last = told.get("max_global_steps", told.get("global_steps"))
    first = told.get("min_global_steps", last)
    if last is None:
        return ""
    return f"{last}" if first in (last, None) else f"{first}-{last}"
