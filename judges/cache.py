"""Replies of judges, kept so that the same question to the same model is paid for once."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from rollout.types import Record

__all__ = ["JudgeCache"]


class _Entry(Record, frozen=True, kw_only=True):
    key: str
    model: str
    reply: str


class JudgeCache:
    """An append-only file of replies by content; several runs may share one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._replies: dict[str, str] = {}
        *lines, self._torn = path.read_bytes().split(b"\n") if path.exists() else [b""]
        for line in lines:
            # A line that a crash or a full disk cut short costs its question anew, and nothing else.
            with suppress(msgspec.DecodeError):
                entry = msgspec.json.decode(line, type=_Entry)
                self._replies[entry.key] = entry.reply

    def get(self, key: str) -> str | None:
        """The reply that was kept."""
        return self._replies.get(key)

    def put(self, key: str, model: str, reply: str) -> None:
        """Keep a reply. One write a line, so that writers who share the file don't mix theirs."""
        self._replies[key] = reply
        line = msgspec.json.encode(_Entry(key=key, model=model, reply=reply)) + b"\n"
        if self._torn:
            line, self._torn = b"\n" + line, b""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    @staticmethod
    def key(body: dict[str, Any], repeat: int) -> str:
        """SHA-256 over all that decides a reply: model, sampling, messages, which repetition."""
        return hashlib.sha256(msgspec.json.encode([body, repeat], order="sorted")).hexdigest()
