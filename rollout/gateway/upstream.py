"""The contract of an upstream: whoever answers the policy's model calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from rollout import pictures
from rollout.errors import ModelError, UsageError
from rollout.types import DialectName, JsonObject, Task, Usage

__all__ = [
    "ModelReply",
    "ModelRequest",
    "Refused",
    "Transient",
    "Upstream",
    "chat_completion",
    "estimated_tokens",
]

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class ModelRequest:
    """One model call, in a dialect that the upstream speaks, never streaming."""

    dialect: DialectName
    body: JsonObject
    task: Task
    """The episode's task. Scripted policies play its solutions; a real server must not look at it."""
    seed: int = 0
    """The attempt's seed."""
    locate: Callable[[str], Awaitable[JsonObject]] | None = None
    """`World.locate`, for scripted policies alone, as `task` is."""


@dataclass(frozen=True)
class ModelReply:
    """A whole reply, and its tokens where the server tells them."""

    body: JsonObject
    """In the request's dialect, without server-only fields (token ids, logprobs)."""
    usage: Usage = field(default_factory=Usage)
    finish: str = ""
    """Why it stopped, as `Call.finish`."""
    model: str = ""
    prompt_ids: bytes = b""
    """int32 little-endian."""
    response_ids: bytes = b""
    """int32 little-endian."""
    logprobs: bytes = b""
    """float32 little-endian, one per response id."""
    weights: str = ""
    """Version of the policy's weights, where the server tells it."""


def chat_completion(
    model: str, identity: str, message: JsonObject, finish: str, usage: Usage
) -> JsonObject:
    """The body of a chat reply, for upstreams that have no server to write it."""
    return {
        "id": f"chatcmpl-{identity}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.prompt + usage.completion,
        },
    }


class Transient(ModelError):
    """The upstream may answer if asked again: a dropped connection, 408, 409, 429, 5xx."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the server asked us to wait."""


class Refused(ModelError):
    """The upstream understood the call and will not answer it (4xx): asking again is useless."""

    def __init__(
        self, message: str, status: int = 400, code: str = "invalid_request_error"
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """`context_length_exceeded` is the one that harnesses react to."""


class Upstream(ABC):
    """Answers model calls. One instance serves all episodes of a run."""

    dialects: frozenset[DialectName] = frozenset({"chat"})
    """The dialects that it understands, once `check()` has asked it. The gateway translates the others
    into chat."""
    model: str = ""
    """The model's name, as model calls must give it."""
    label: str = ""
    """The name that people read: `gpt-oss-20b`, or `reference policy (no LLM)`."""
    context_window: int = 131_072
    """Tokens; prompt and reply together."""
    scripted: bool = False
    """Whether it plays a prepared script: then it has no server, and can't serve as a judge."""

    @classmethod
    def from_spec(cls, argument: str, base_url: str) -> Self:
        """From `--model NAME:ARGUMENT --base-url URL`, NAME being this module's.

        Keys come from the environment. Raises UsageError for an argument that makes no sense, and, unless
        it is overridden, for an upstream that only programs can make.
        """
        raise UsageError(f"--model: a {cls.__name__} can't be made from the command line")

    async def check(self) -> None:
        """Raise UsageError with one line when it can't be reached, before anything starts."""

    def unfit(self, task: Task) -> str:
        """Why it can't play the task; empty when it can. Real models can try anything."""
        return ""

    @abstractmethod
    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call. Raises Transient or Refused."""

    async def count_tokens(self, body: JsonObject) -> int:
        """Tokens of a chat request's prompt; an estimate where the server can't count."""
        return estimated_tokens(body.get("messages"))

    async def close(self) -> None:
        """Release connections."""

    def fingerprint(self) -> JsonObject:
        """Model and settings for the manifest; never a key."""
        return {"model": self.model}


def estimated_tokens(value: Any) -> int:
    """Tokens of a part of a chat request, by the length of its JSON; never 0."""
    size, images = pictures.without(msgspec.json.encode(value))
    return 1 + size // CHARACTERS_PER_TOKEN + images * pictures.TOKENS
