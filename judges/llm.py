"""A judge that is an LLM behind any upstream (`--judge openai:NAME`)."""

from __future__ import annotations

import asyncio
import copy
import time
from typing import Any, Self

from judges.cache import JudgeCache
from rollout.errors import JudgeError, ModelError
from rollout.gateway.retry import Retry
from rollout.gateway.upstream import ModelReply, ModelRequest, Refused, Transient, Upstream
from rollout.judge import Judge, Spent
from rollout.store import storable
from rollout.types import JsonObject, Task

__all__ = ["LLMJudge"]

TEMPERATURE = 0.0
MAX_TOKENS = 8192
"""Both are claw-eval's (src/claw_eval/graders/llm_judge.py)."""

CAP, NEWER_CAP = "max_tokens", "max_completion_tokens"
"""OpenAI's reasoning models refuse the one, many other servers don't know the other."""

PARALLEL = 8
"""Questions under way at once: a protocol may ask one about each of fifty screenshots."""


class LLMJudge(Judge):
    """Asks at temperature 0, each question once where there is a cache.

    `temperature` None leaves it to the server: reasoning models take no other than their own.
    """

    def __init__(
        self,
        upstream: Upstream,
        cache: JudgeCache | None = None,
        retry: Retry | None = None,
        *,
        temperature: float | None = TEMPERATURE,
        parallel: int = PARALLEL,
    ) -> None:
        self.model = upstream.model
        self.spent = Spent(model=self.model)
        self._upstream = upstream
        self._line = _Line(upstream, retry or Retry(), parallel)
        self._cache = cache
        self._sampling: JsonObject = {"temperature": temperature, CAP: MAX_TOKENS}
        self._whole: LLMJudge | None = None

    async def reply(self, messages: list[dict[str, Any]], repeat: int = 0) -> str:
        sampling = {name: value for name, value in self._sampling.items() if value is not None}
        body: JsonObject = storable({"model": self.model, "messages": messages, **sampling})
        key = JudgeCache.key(body, repeat)
        known = self._cache.get(key) if self._cache else None
        if known is not None:
            self._count(Spent(cached=1))
            return known
        reply = await self._line.ask(body)
        self._count(Spent(calls=1, usage=reply.usage))
        text = str(reply.body["choices"][0]["message"].get("content") or "")
        if self._cache:
            self._cache.put(key, self.model, text)
        return text

    def metered(self) -> Self:
        part = copy.copy(self)
        part.spent, part._whole = Spent(model=self.model), self
        return part

    def fingerprint(self) -> JsonObject:
        return {**self._upstream.fingerprint(), **self._sampling}

    def _count(self, spent: Spent) -> None:
        self.spent += spent
        if self._whole is not None:
            self._whole._count(spent)


class _Line:
    """The way to the model: so many calls at once, failures waited out."""

    def __init__(self, upstream: Upstream, retry: Retry, parallel: int) -> None:
        self._upstream = upstream
        self._retry = retry
        self._slots = asyncio.Semaphore(parallel)
        self._cap = CAP
        """What the model calls the longest reply."""

    async def ask(self, body: JsonObject) -> ModelReply:
        """Raises JudgeError when there is no reply to be had."""
        async with self._slots:
            try:
                return await self._capped(body)
            except Transient as error:
                raise JudgeError(f"the judge {body['model']} is out of reach: {error}") from error
            except ModelError as error:
                raise JudgeError(f"the judge {body['model']} refused: {error}") from error

    async def _capped(self, body: JsonObject) -> ModelReply:
        """Under the name for its longest reply that the model takes."""
        cap = self._cap
        try:
            return await self._patiently(_renamed(body, cap))
        except Refused as refusal:
            if cap == NEWER_CAP or NEWER_CAP not in str(refusal):
                raise
        self._cap = NEWER_CAP
        return await self._patiently(_renamed(body, NEWER_CAP))

    async def _patiently(self, body: JsonObject) -> ModelReply:
        """Asked again while the failure is transient. Raises ModelError."""
        request = ModelRequest(dialect="chat", body=body, task=Task(id="judge", prompt=""))
        tries, failed_at = 0, 0.0
        while True:
            tries += 1
            try:
                return await self._upstream.complete(request)
            except Transient as error:
                now = time.monotonic()
                failed_at = failed_at or now
                pause = self._retry.delay(tries, now - failed_at, error)
                if pause is None:
                    raise
                await asyncio.sleep(pause)


def _renamed(body: JsonObject, cap: str) -> JsonObject:
    return {cap if name == CAP else name: value for name, value in body.items()}
