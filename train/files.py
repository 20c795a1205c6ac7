"""Rows to a file and back, a few at a time: JSONL or Parquet, by the file's name.

A file appears under its name only when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, Self

import msgspec
import numpy as np

from rollout.errors import UsageError, usable
from rollout.types import JsonObject

__all__ = ["FORMATS", "Row", "RowWriter", "plain", "read_rows", "writer"]

FORMATS = (".jsonl", ".parquet")

GROUP_BYTES = 32 * 2**20
"""How much is held in memory before it is written as one row group."""

READ_ROWS = 32

ROOM = "make room, or choose another place"


class Row(Protocol):
    """A record that can be written; `size` is in bytes, roughly."""

    @property
    def size(self) -> int: ...


class RowWriter:
    """Collects rows, and hands them on in portions."""

    def __init__(
        self, path: Path, write: Callable[[list[Any]], object], close: Callable[[], None]
    ) -> None:
        self.rows = 0
        self._path = path
        self._write, self._close = write, close
        self._held: list[Row] = []
        self._bytes = 0

    def add(self, row: Row) -> None:
        """Write a row, sooner or later."""
        self.rows += 1
        self._held.append(row)
        self._bytes += row.size
        if self._bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            with usable(self._path, ROOM):
                self._write(self._held)
        self._held, self._bytes = [], 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        part = _part(self._path)
        try:
            if error is None:
                self._flush()
            with usable(self._path, ROOM):
                self._close()
                if error is None:
                    os.replace(part, self._path)
        finally:
            part.unlink(missing_ok=True)


def writer(path: Path, row: type[Any]) -> RowWriter:
    """A writer of such rows to `path`. Raises UsageError for a name or a place that won't do."""
    _check(path)
    if path.exists():
        raise UsageError(f"{path} exists already: remove it, or choose another name")
    try:
        return _parquet(path, row) if path.suffix == ".parquet" else _jsonl(path)
    except OSError as error:
        _part(path).unlink(missing_ok=True)
        raise UsageError(f"{path}: {error.strerror}; choose another place") from error


def read_rows(path: Path) -> Iterator[JsonObject]:
    """The rows of a file that a writer made."""
    _check(path)
    if path.suffix == ".jsonl":
        with path.open("rb") as lines:
            yield from map(msgspec.json.decode, lines)
        return
    _, pq = _pyarrow()
    for batch in pq.ParquetFile(path).iter_batches(READ_ROWS):
        yield from batch.to_pylist()


def _check(path: Path) -> None:
    if path.suffix not in FORMATS:
        raise UsageError(f"{path}: the name must end in {' or '.join(FORMATS)}")


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _jsonl(path: Path) -> RowWriter:
    file = _part(path).open("wb")
    encode = msgspec.json.Encoder(enc_hook=plain).encode_lines
    return RowWriter(path, lambda rows: file.write(encode(rows)), file.close)


def _parquet(path: Path, row: type[Any]) -> RowWriter:
    pa, pq = _pyarrow()
    schema = _schema(pa, row)
    file = pq.ParquetWriter(_part(path), schema, compression="zstd")

    def write(rows: list[Any]) -> None:
        columns = [[getattr(row, name) for row in rows] for name in schema.names]
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
        ]
        file.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))

    return RowWriter(path, write, file.close)


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} in a row")


def _schema(pa: Any, row: type[Any]) -> Any:
    """The Parquet schema that a record's annotations say."""
    function = pa.struct([("name", pa.string()), ("arguments", pa.string())])
    call = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", function)])
    texts = ("role", "content", "reasoning_content")
    message = pa.struct(
        [
            *((name, pa.string()) for name in texts),
            ("tool_calls", pa.list_(call)),
            ("tool_call_id", pa.string()),
        ]
    )
    types = {
        "str": pa.string(),
        "int": pa.int32(),
        "bool": pa.bool_(),
        "float": pa.float64(),
        "list[str]": pa.list_(pa.string()),
        "list[int]": pa.list_(pa.int32()),
        "list[JsonObject]": pa.list_(message),
        "NDArray[np.int8]": pa.list_(pa.int8()),
        "NDArray[np.int32]": pa.list_(pa.int32()),
        "NDArray[np.float32]": pa.list_(pa.float32()),
    }
    told = {name: text.removesuffix(" | None") for name, text in row.__annotations__.items()}
    return pa.schema([(name, types[text]) for name, text in told.items()])


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow: pip install 'anyharness[train]', or write .jsonl"
        ) from error
    return pa, pq
