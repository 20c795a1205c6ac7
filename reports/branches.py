"""The tree of an episode's model calls: which call goes on from which, told by what each was sent.

A call goes on from the earlier call whose messages, its reply included, are the longest beginning of its
own. Where a harness rewrites its history, compacts it or asks a sub-agent, that beginning is shorter, and
a branch begins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from rollout.transcript import UNREADABLE, chat_messages
from rollout.types import Call, JsonObject

__all__ = ["Link", "links"]


@dataclass(frozen=True)
class Link:
    """Where a call stands in the tree, and what it adds to it."""

    branch: int
    """From 0, in order of appearance."""
    parent: int | None = None
    """Index of the call that it goes on from; None where it shares no reply with any."""
    shared: int = 0
    """How many of its messages earlier calls had already."""
    heard: tuple[JsonObject, ...] = ()
    """The messages that are new in its request."""
    said: JsonObject | None = None
    """The reply; None where the call can't be read (an error, a lost reply)."""


@dataclass
class _Tree:
    seen: dict[bytes, int] = field(default_factory=dict)
    """The latest call that holds a beginning, by the beginning's hash."""
    ends: dict[int, bytes] = field(default_factory=dict)
    """The hash of all of a call's messages, its reply included."""
    branch: dict[int, int] = field(default_factory=dict)
    continued: set[int] = field(default_factory=set)

    def add(self, index: int, messages: Sequence[JsonObject]) -> Link:
        *asked, said = messages
        hashes = list(_beginnings(messages))
        shared = max((n for n in range(len(asked) + 1) if hashes[n] in self.seen), default=0)
        replied = any(message["role"] == "assistant" for message in asked[:shared])
        parent = self.seen.get(hashes[shared]) if replied else None
        branch = self._branch(parent, hashes[shared])
        for beginning in hashes[1:]:
            self.seen[beginning] = index
        self.ends[index], self.branch[index] = hashes[-1], branch
        return Link(branch, parent, shared, tuple(asked[shared:]), said)

    def lost(self, index: int) -> Link:
        """A call that can't be read is shown on the branch of the one before it."""
        self.branch[index] = self.branch.get(index - 1, 0)
        return Link(self.branch[index])

    def _branch(self, parent: int | None, beginning: bytes) -> int:
        if parent is not None and self.ends[parent] == beginning and parent not in self.continued:
            self.continued.add(parent)
            return self.branch[parent]
        return max(self.branch.values(), default=-1) + 1


def links(calls: Sequence[Call]) -> list[Link]:
    """The place of each call in the tree, in the order of the calls."""
    tree, found = _Tree(), []
    for index, call in enumerate(calls):
        try:
            messages = chat_messages(call)
            link = tree.lost(index) if call.status >= 400 else tree.add(index, messages)
        except UNREADABLE:
            link = tree.lost(index)
        found.append(link)
    return found


def _beginnings(messages: Sequence[JsonObject]) -> Iterator[bytes]:
    """The hash of the first n messages, for n from 0."""
    digest = hashlib.sha256()
    yield digest.digest()
    for message in messages:
        digest.update(msgspec.json.encode(_essence(message)))
        yield digest.copy().digest()


def _essence(message: JsonObject) -> list[object]:
    """What makes two messages the same: who says what. Thoughts and ids are often not sent back."""
    asked = [call["function"] for call in message.get("tool_calls") or ()]
    return [message["role"], message.get("content") or "", asked]
