"""The contract of a dialect: one wire format of model calls <-> the internal chat request and reply.

Internally a call is an OpenAI chat-completions body (a plain dict): what most model servers speak. A
dialect turns a harness's request into that, and a whole chat reply into its own reply, which it can
also play as a stream of events. All functions are pure, and `body` is always the request as it came:
what a stream must know of it (its id, whether usage was asked for) is derived from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from rollout.types import DialectName, JsonObject, Usage

__all__ = ["Dialect"]


class Dialect(ABC):
    """One wire format."""

    name: ClassVar[DialectName]
    path: ClassVar[str]
    """Below `/v1`, e.g. `/chat/completions`."""

    @abstractmethod
    def to_chat(self, body: JsonObject) -> tuple[JsonObject, Any]:
        """The chat request, and what `from_chat` must remember (tool namespaces, freeform tools).

        Raises ValueError naming the field for a body that is not of this dialect.
        """

    @abstractmethod
    def from_chat(self, reply: JsonObject, body: JsonObject, memory: Any) -> JsonObject:
        """A whole chat-completions reply as a whole reply of this dialect to request `body`."""

    @abstractmethod
    def opening(self, body: JsonObject) -> bytes:
        """The first SSE event(s) of a stream, sent before the reply is known; may be empty."""

    @abstractmethod
    def keep_alive(self, body: JsonObject) -> bytes:
        """A real event that keeps the harness's idle timer quiet while the upstream works."""

    @abstractmethod
    def events(self, reply: JsonObject, body: JsonObject) -> Iterator[bytes]:
        """A whole reply to `body` as the rest of the stream after `opening`, end marker included."""

    @abstractmethod
    def error(self, status: int, message: str, code: str) -> JsonObject:
        """An error body."""

    @abstractmethod
    def error_events(self, message: str, code: str, body: JsonObject) -> Iterator[bytes]:
        """An error inside the stream that `opening(body)` has begun."""

    @abstractmethod
    def usage(self, reply: JsonObject) -> Usage:
        """Token counts of a reply of this dialect."""

    @abstractmethod
    def finish(self, reply: JsonObject) -> str:
        """Why generation stopped, in chat terms: stop, tool_calls, length, content_filter."""

    @abstractmethod
    def is_empty(self, reply: JsonObject) -> bool:
        """Whether a reply neither says anything nor calls a tool."""
