"""A judge that is an LLM behind any upstream (`--judge openai:NAME`)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from judges.cache import JudgeCache
from rollout.errors import JudgeError, ModelError
from rollout.gateway.retry import Retry
from rollout.gateway.upstream import ModelRequest, Transient, Upstream
from rollout.judge import Judge
from rollout.types import JsonObject, Task

__all__ = ["LLMJudge"]

SAMPLING: JsonObject = {"temperature": 0.0, "max_tokens": 8192}
"""claw-eval's (src/claw_eval/graders/llm_judge.py)."""


class LLMJudge(Judge):
    """Asks at temperature 0, each question once where there is a cache."""

    def __init__(
        self, upstream: Upstream, cache: JudgeCache | None = None, retry: Retry | None = None
    ) -> None:
        self.model = upstream.model
        self._upstream = upstream
        self._cache = cache
        self._retry = retry or Retry()

    async def reply(self, messages: list[dict[str, Any]], repeat: int = 0) -> str:
        body = {"model": self.model, "messages": messages, **SAMPLING}
        key = JudgeCache.key(body, repeat)
        known = self._cache.get(key) if self._cache else None
        if known is not None:
            return known
        text = await self._ask(body)
        if self._cache:
            self._cache.put(key, self.model, text)
        return text

    async def _ask(self, body: JsonObject) -> str:
        request = ModelRequest(dialect="chat", body=body, task=Task(id="judge", prompt=""))
        tries, failed_at = 0, 0.0
        while True:
            tries += 1
            try:
                reply = await self._upstream.complete(request)
                return str(reply.body["choices"][0]["message"].get("content") or "")
            except Transient as error:
                now = time.monotonic()
                failed_at = failed_at or now
                pause = self._retry.delay(tries, now - failed_at, error)
                if pause is None:
                    raise JudgeError(f"the judge {self.model} is out of reach: {error}") from error
                await asyncio.sleep(pause)
            except ModelError as error:
                raise JudgeError(f"the judge {self.model} refused: {error}") from error

    def fingerprint(self) -> JsonObject:
        return {**self._upstream.fingerprint(), **SAMPLING}
