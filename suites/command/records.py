"""A benchmark's own file of tasks, a JSON array or JSON lines; errors in it are told by their line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rollout.errors import UsageError

__all__ = ["Records", "find", "ids_hash", "read"]

T = TypeVar("T", bound=msgspec.Struct)


class Records(msgspec.Struct, frozen=True):
    """A file and the records in it, each with the number of its line."""

    path: Path
    sha256: str
    """Of the file."""
    lines: list[tuple[int, Any]]

    def typed(self, kind: type[T], key: str) -> list[T]:
        """The records as `kind`, unique by their field `key`. Raises UsageError."""
        found: dict[str, T] = {}
        for line, value in self.lines:
            try:
                record = msgspec.convert(value, kind)
            except msgspec.ValidationError as error:
                raise self.wrong(line, str(error)) from error
            name = getattr(record, key)
            if name in found:
                raise self.wrong(line, f"{key} {name!r} is there twice")
            found[name] = record
        if not found:
            raise UsageError(f"{self.path} holds no task; name the benchmark's own file")
        return list(found.values())

    def wrong(self, line: int, what: str) -> UsageError:
        """The error of one record."""
        return UsageError(f"{self.path}, line {line}: {what}; restore the benchmark's own file")


def find(data: Path, *patterns: str) -> Path:
    """The file that `data` is, or the one in that folder. Raises UsageError where there is not one."""
    if data.is_file():
        return data
    if not data.is_dir():
        raise UsageError(f"--data {data}: no such file or folder")
    found = sorted({path for pattern in patterns for path in data.glob(pattern)})
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found) or "none"
    raise UsageError(f"--data {data}: name one file; those like {patterns[0]} there: {names}")


def read(path: Path) -> Records:
    """The records of a file. Raises UsageError."""
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: not UTF-8; restore the file") from error
    records = Records(path, hashlib.sha256(raw).hexdigest(), [])
    parts = _array(text) if text.lstrip().startswith("[") else _lines(text)
    try:
        records.lines.extend(parts)
    except _NotJson as error:
        raise records.wrong(error.line, f"not JSON: {error}") from error
    return records


def ids_hash(ids: list[str]) -> str:
    """A digest of a set of task ids, whatever their order: two files with the same one have the same
    tasks, though perhaps in other words."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


class _NotJson(ValueError):
    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


def _lines(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise _NotJson(number, str(error)) from None


def _array(text: str) -> Iterator[tuple[int, Any]]:
    """The items one after the other, so that each has its line."""
    decoder, at, line, seen = json.JSONDecoder(), text.index("[") + 1, 1, 0
    while True:
        at = _skip(text, at)
        if text.startswith("]", at):
            return
        line, seen = line + text.count("\n", seen, at), at
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise _NotJson(error.lineno, error.msg) from None
        yield line, value
        at = _skip(text, at)
        if text.startswith(",", at):
            at += 1
        elif not text.startswith("]", at):
            raise _NotJson(text.count("\n", 0, at) + 1, "a comma or ] must follow")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
