"""Episodes with made-up calls: the token ids are what a test says they are."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from rollout.types import Call, Episode, Grade, Outcome, Trace

__all__ = ["call", "episode", "floats", "ids", "ints", "trace"]


def ids(values: Iterable[int]) -> bytes:
    return array("i", values).tobytes()


def floats(values: Iterable[float]) -> bytes:
    return array("f", values).tobytes()


def ints(data: bytes) -> list[int]:
    return array("i", data).tolist()


def call(prompt: Sequence[int], response: Sequence[int], index: int = 0, **more: Any) -> Call:
    """A call; the logprob of token n is -n/1024 (exact in float32) unless given."""
    fields: dict[str, Any] = {
        "index": index,
        "dialect": "chat",
        "kind": "main",
        "request": msgspec.json.encode({"messages": [{"role": "user", "content": "hi"}]}),
        "reply": msgspec.json.encode({"choices": [{"message": {"role": "assistant"}}]}),
        "finish": "stop",
        "prompt_ids": ids(prompt),
        "response_ids": ids(response),
        "logprobs": floats(-token / 1024 for token in response),
    }
    return Call(**(fields | more))


def trace(*calls: Call) -> Trace:
    """The calls in the order given, which becomes their order of arrival."""
    numbered = (msgspec.structs.replace(one, index=i) for i, one in enumerate(calls))
    return Trace(calls=tuple(numbered))


def episode(task: str = "task", attempt: int = 0, score: float = 1.0, **more: Any) -> Episode:
    fields: dict[str, Any] = {
        "id": f"{task}#{attempt}",
        "task_id": task,
        "attempt": attempt,
        "outcome": Outcome.PASSED if score >= 0.5 else Outcome.FAILED,
        "grade": Grade(score=score, passed=score >= 0.5),
    }
    return Episode(**(fields | more))
