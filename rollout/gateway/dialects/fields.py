"""Reading fields of a request that nobody has validated: a wrong one is a ValueError that names it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from rollout.types import JsonObject

__all__ = ["call_key", "need", "objects", "optional", "tokens", "unsupported"]

T = TypeVar("T")

NAMES: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}
encode = msgspec.json.Encoder().encode


def need(parent: JsonObject, key: str, kind: type[T], where: str = "") -> T:
    """The field `key` of the object at `where`."""
    value = parent.get(key)
    if isinstance(value, kind):
        return value
    found = f"not {type(value).__name__}" if key in parent else "but it is missing"
    raise ValueError(f"{_path(where, key)}: must be {NAMES[kind]}, {found}")


def optional(parent: JsonObject, key: str, kind: type[T], where: str = "") -> T | None:
    """The field `key` of the object at `where`, None when it is absent or null."""
    return None if parent.get(key) is None else need(parent, key, kind, where)


def objects(values: Sequence[Any], where: str) -> Iterator[tuple[str, JsonObject]]:
    """Each object of a list, with its own path."""
    for index, value in enumerate(values):
        path = f"{where}[{index}]"
        if not isinstance(value, dict):
            raise ValueError(f"{path}: must be an object, not {type(value).__name__}")
        yield path, value


def unsupported(value: Any, where: str, key: str) -> ValueError:
    """The error for a value that this dialect does not have, or that chat can't express."""
    return ValueError(f"{_path(where, key)}: {value!r} is not supported")


def tokens(value: Any) -> int:
    """A number of tokens as a server told it; 0 for what is none."""
    counted = isinstance(value, int | float) and 0 <= value < 2**53
    return int(value) if counted else 0


def call_key(history: Any) -> str:
    """An id for the call made with this history: known before its reply, and new with every turn.

    The length and the last turn are enough, since ids need be unique only within a conversation, and
    hashing megabytes of screenshots for each event would not be free.
    """
    turns = history if isinstance(history, list) else [history]
    return hashlib.blake2b(encode((len(turns), turns[-1:])), digest_size=12).hexdigest()


def _path(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
