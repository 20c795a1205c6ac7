"""A model server made of an engine: chat requests in, tokens through, chat replies out.

    upstream = PolicyUpstream(engine, tokenizer, model="qwen", context_window=4096)

A request is rendered with the model's own chat template, and the engine continues those ids. Its tokens
are recorded as they were sampled; their text is parsed into thoughts and tool calls for the harness.
`--model train.policy:PATH` evaluates a local checkpoint in the same way, with `train.local.engine`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from array import array
from collections.abc import Sequence
from typing import Any, Protocol, Self

from rollout.errors import UsageError
from rollout.gateway.upstream import (
    ModelReply,
    ModelRequest,
    Refused,
    Transient,
    Upstream,
    chat_completion,
)
from rollout.types import JsonObject, Usage
from train.engine import Engine, Sampled, SamplingParams
from train.messages import for_template, image_urls
from train.packages import need_torch
from train.parsing import OPENING, Said, parse

__all__ = ["PolicyUpstream", "Tokenizer"]

CONTEXT = "context_length_exceeded"
CAPS = ("max_completion_tokens", "max_tokens")
ABORT_PAUSE = 0.5
"""Seconds until a call that a weight update cut off is asked again."""
TAIL = 8
"""Tokens at the end of a prompt in which a template may open a thought."""


class Tokenizer(Protocol):
    """Of transformers' tokenizers, what is used here."""

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any: ...

    def decode(self, token_ids: Any, **options: Any) -> Any: ...


class PolicyUpstream(Upstream):
    """Serves the policy that is being trained."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        *,
        model: str = "policy",
        context_window: int = 32_768,
        template: JsonObject | None = None,
    ) -> None:
        """`template` holds variables of the chat template, `enable_thinking` for instance."""
        self.model = self.label = model
        self.context_window = context_window
        self._engine = engine
        self._tokenizer = tokenizer
        self._template = template or {}
        self._rendering = asyncio.Lock()

    @classmethod
    def from_spec(cls, argument: str, base_url: str) -> Self:
        if not argument:
            raise UsageError("--model train.policy: names no checkpoint; write train.policy:PATH")
        if base_url:
            raise UsageError("--base-url: --model train.policy has no server; leave one out")
        need_torch("--model train.policy")
        from train.local.engine import LocalEngine

        engine = LocalEngine.load(argument)
        return cls(engine, engine.tokenizer, model=argument, context_window=engine.context_window)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer a chat call.

        Raises Transient when a weight update cut it off, Refused when the prompt does not fit.
        """
        body = request.body
        prompt = await self._render(body)
        room = self.context_window - len(prompt)
        if room < 1:
            raise Refused(
                f"the prompt has {len(prompt)} tokens, the context window {self.context_window}",
                code=CONTEXT,
            )
        sampled = await self._engine.generate(
            prompt,
            _sampling(body, room, request.seed, prompt),
            request=f"{request.task.id}/{request.seed}",
            images=_images(body["messages"]),
        )
        if sampled.finish == "abort":
            raise Transient("the weights are being replaced", retry_after=ABORT_PAUSE)
        return self._reply(prompt, sampled)

    async def count_tokens(self, body: JsonObject) -> int:
        return len(await self._render(body))

    async def close(self) -> None:
        """Close the engine where it can be."""
        if (close := getattr(self._engine, "close", None)) is not None:
            close()

    async def _render(self, body: JsonObject) -> list[int]:
        """The prompt's ids. Raises Refused for messages that the template does not take.

        Long prompts and pictures take a while, so not in the event loop; and one at a time, for
        tokenizers can't be shared between threads.
        """
        async with self._rendering:
            return await asyncio.to_thread(self._ids, body)

    def _ids(self, body: JsonObject) -> list[int]:
        try:
            ids: list[int] = self._tokenizer.apply_chat_template(
                for_template(body["messages"]),
                tools=body.get("tools") or None,
                add_generation_prompt=True,
                return_dict=False,
                **{**self._template, **(body.get("chat_template_kwargs") or {})},
            )
        except Exception as error:
            raise Refused(f"chat template: {type(error).__name__}: {error}") from error
        return ids

    def _reply(self, prompt: Sequence[int], sampled: Sampled) -> ModelReply:
        tail = self._tokenizer.decode(prompt[-TAIL:]).rstrip()
        text = self._tokenizer.decode(sampled.ids, skip_special_tokens=True)
        said = parse(text, thinking=tail.endswith(OPENING))
        finish = "length" if sampled.finish == "length" else "tool_calls" if said.calls else "stop"
        usage = Usage(prompt=len(prompt), completion=len(sampled.ids))
        ids = array("i", sampled.ids).tobytes()
        identity = _digest(array("i", prompt).tobytes(), ids)
        return ModelReply(
            body=chat_completion(self.model, identity, _message(said, identity), finish, usage),
            usage=usage,
            finish=finish,
            model=self.model,
            prompt_ids=array("i", prompt).tobytes(),
            response_ids=ids,
            logprobs=array("f", sampled.logprobs).tobytes(),
            weights=sampled.weights,
        )


def _sampling(body: JsonObject, room: int, seed: int, prompt: Sequence[int]) -> SamplingParams:
    """How the request wants to be sampled. Its seed is made from the episode's and the prompt, so that
    the tokens do not depend on what else is sampled at the same time."""
    asked = [body[name] for name in CAPS if isinstance(body.get(name), int)]
    digest = hashlib.sha256(seed.to_bytes(8, "big", signed=True) + array("i", prompt).tobytes())
    return SamplingParams(
        max_tokens=max(1, min([room, *asked])),
        temperature=_number(body, "temperature", 1.0),
        top_p=_number(body, "top_p", 1.0),
        top_k=int(_number(body, "top_k", 0)),
        seed=int.from_bytes(digest.digest()[:6], "big"),
    )


def _number(body: JsonObject, name: str, default: float) -> float:
    value = body.get(name)
    return default if value is None else float(value)


def _images(messages: Sequence[JsonObject]) -> list[bytes]:
    """The pictures of a request, in order. Raises Refused for one that is not sent along."""
    urls = [url for message in messages for url in image_urls(message)]
    return [_image(url) for url in urls]


def _image(url: str) -> bytes:
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        raise Refused(f"image {url[:40]!r}: only data: URLs in base64 are served")
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise Refused(f"image {url[:40]!r}: {error}") from error


def _message(said: Said, identity: str) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": said.content or None}
    if said.thoughts:
        message["reasoning_content"] = said.thoughts
    if said.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{identity}{number:02d}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for number, (name, arguments) in enumerate(said.calls)
        ]
    return message


def _digest(prompt: bytes, response: bytes) -> str:
    """An id for the reply: differs from turn to turn, and is the same again for the same tokens."""
    return hashlib.sha256(prompt + b"\0" + response).hexdigest()[:22]
