"""Files beside the page: episodes in shards that load on demand, and pictures.

A page that is opened from disk may not fetch(), but it may add a <script>: a shard is a script that hands
its episodes to the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import msgspec

from rollout.errors import usable
from rollout.store import storable
from rollout.types import Image, JsonObject

__all__ = ["Pictures", "Shards", "script_json"]

SHARD_BYTES = 1_000_000
"""A shard is closed when it holds this much: quick to load, and few files for a large run."""
LONG = 400
"""Characters from which a message's text is kept once per shard: system prompts above all."""

_SUFFIX = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}


def script_json(value: Any) -> str:
    """JSON that is safe inside a <script>: nothing in it can end the element or start a comment.

    `<` is escaped, and so are the two line ends that old JavaScript does not allow in a string.
    """
    text = msgspec.json.encode(storable(value)).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


class Shards:
    """Writes episodes into `folder` as `0.js`, `1.js`, ...; one shard is in memory at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._begin()

    def add(self, index: int, detail: JsonObject) -> int:
        """Keep an episode under its index in the page's list. The number of its shard."""
        if self._size >= SHARD_BYTES:
            self._flush()
        text = script_json(self._shared(detail))
        self._parts.append(f'"{index}":{text}')
        self._size += len(text)
        return self._number

    def __enter__(self) -> Self:
        with usable(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            for old in self._folder.glob("*.js"):
                old.unlink()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._parts:
            self._flush()

    def _begin(self) -> None:
        self._parts: list[str] = []
        self._texts: dict[str, int] = {}
        self._size = 0

    def _flush(self) -> None:
        path = self._folder / f"{self._number}.js"
        with usable(path), path.open("w", encoding="utf-8") as file:
            file.write(f"anyharness.shard({self._number},{{")
            file.write(",\n".join(self._parts))
            file.write("},\n")
            file.write(script_json(list(self._texts)))
            file.write(");\n")
        self._number += 1
        self._begin()

    def _shared(self, detail: JsonObject) -> JsonObject:
        """The detail with each long text of a message replaced by its place in the shard's own list."""
        calls = [
            {**call, "heard": [self._message(message) for message in call["heard"]]}
            for call in detail.get("calls", ())
        ]
        return {**detail, "calls": calls}

    def _message(self, message: Mapping[str, Any]) -> JsonObject:
        text = message["text"]
        if len(text) < LONG:
            return dict(message)
        if text not in self._texts:
            self._texts[text] = len(self._texts)
            self._size += len(text)
        return {**message, "text": self._texts[text]}


class Pictures:
    """Writes pictures into `folder`, each once, under the SHA-256 of its bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, str] = {}

    def keep(self, image: Image) -> str:
        """The picture's file name; empty for what no browser shows."""
        suffix = _SUFFIX.get(image.media_type)
        if suffix is None:
            return ""
        digest = image.digest
        if digest not in self._names:
            path = self._folder / f"{digest}.{suffix}"
            with usable(path):
                self._folder.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    path.write_bytes(image.data)
            self._names[digest] = path.name
        return self._names[digest]
