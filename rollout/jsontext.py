"""JSON from those whom nobody has checked: agents, harnesses, model servers.

msgspec is strict (RFC 8259 over valid UTF-8). Other languages' writers are not: JavaScript and Python
write half an emoji, where a text was cut inside it, as a lone surrogate (`\\ud83d`); Python writes NaN,
and integers of any length. Such text is repaired here, at the door, so that everything behind it, the
records included, is JSON that any reader takes.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar, overload

import msgspec

__all__ = ["plain", "read_json", "repaired"]

T = TypeVar("T")

LONGEST_INTEGER = 4300
"""Digits that Python converts (docs.python.org/3/library/stdtypes.html#int-max-str-digits)."""

DEEP = "nested too deeply"


@overload
def read_json(data: bytes | str) -> Any: ...
@overload
def read_json(data: bytes | str, type: type[T]) -> T: ...
def read_json(data: bytes | str, type: Any = Any) -> Any:
    """The value of a JSON text, repaired where that is needed. Raises nothing but ValueError."""
    try:
        return msgspec.json.decode(data, type=type)
    except (ValueError, RecursionError):
        return msgspec.json.decode(repaired(data), type=type)


def repaired(data: bytes | str) -> bytes:
    """The same value in strict JSON: U+FFFD for half a character, null for what is no number.

    Raises ValueError for what is no JSON in anyone's eyes, or nested too deeply.
    """
    try:
        return msgspec.json.encode(_clean(json.loads(data, parse_int=_integer)))
    except RecursionError:
        raise ValueError(DEEP) from None


def plain(value: Any) -> bytes:
    """A value of JSON's types as strict JSON. Raises ValueError where it is nested too deeply."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_clean(value))
    except RecursionError:
        raise ValueError(DEEP) from None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
