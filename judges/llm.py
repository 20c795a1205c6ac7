"""A judge that is an LLM behind any upstream (`--judge openai:NAME`)."""

from __future__ import annotations

import json
import re
from typing import Any

from rollout.errors import JudgeError, ModelError
from rollout.gateway.upstream import ModelRequest, Transient, Upstream
from rollout.judge import Judge, Verdict
from rollout.types import JsonObject, Task

__all__ = ["LLMJudge", "read_verdict"]

TRIES = 4
"""A reply that can't be read is asked for again: even at temperature 0 servers vary."""


class LLMJudge(Judge):
    """Asks for `{"score": 0..1, "reasoning": "..."}` at temperature 0."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def ask(self, messages: list[dict[str, Any]]) -> Verdict:
        body = {"model": self._upstream.model, "messages": messages, "temperature": 0.0}
        request = ModelRequest(dialect="chat", body=body, task=Task(id="judge", prompt=""))
        problem = ""
        for _ in range(TRIES):
            try:
                reply = await self._upstream.complete(request)
                return read_verdict(str(reply.body["choices"][0]["message"].get("content") or ""))
            except (Transient, ValueError) as error:
                problem = str(error)
            except ModelError as error:
                raise JudgeError(f"the judge {self._upstream.label} refused: {error}") from error
        raise JudgeError(f"the judge {self._upstream.label} gave no verdict: {problem}")

    def fingerprint(self) -> JsonObject:
        return {**self._upstream.fingerprint(), "temperature": 0.0}


def read_verdict(text: str) -> Verdict:
    """The verdict in a reply, with prose or braces around it or in it.

    The last JSON object with a `score` counts: models think aloud before they decide. Raises ValueError
    when there is none, or its score is not a number in [0, 1].
    """
    decoder = json.JSONDecoder()
    found: Verdict | None = None
    for start in (match.start() for match in re.finditer(r"\{", text)):
        try:
            value, _ = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if "score" in value:
            found = _verdict(value, text)
    if found is None:
        raise ValueError(f"no JSON object with a score in the reply {text[:200]!r}")
    return found


def _verdict(value: dict[str, Any], raw: str) -> Verdict:
    score = value["score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise ValueError(f"score: {score!r} is not a number from 0 to 1")
    return Verdict(score=float(score), reasoning=str(value.get("reasoning", "")), raw=raw)
