"""The episode store: append-only, crash-safe, and the one source of truth of a run.

A run's folder holds two files. `episodes.jsonl` has one line per episode, for jq and pandas; the line
ends with the place, length and CRC-32 of the episode's frame in `traces.zst`. That file is a row of zstd
frames (RFC 8878), each one MessagePack-encoded `Trace`, so `zstd -dc traces.zst` works as well.

An episode is written in this order: the frame, fsync, the whole line in a single write, fsync. Only then
does it exist. Whatever a crash leaves behind is therefore at most one torn episode at the end; opening
the store for append cuts it off and says so. Damage anywhere else is an error, never dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import msgspec
import zstandard

from rollout.errors import UsageError, usable
from rollout.types import Episode, Record, Trace

__all__ = ["EpisodeStore", "lock_folder", "storable", "sync_folder"]

EPISODES = "episodes.jsonl"
TRACES = "traces.zst"
LOCK = ".lock"

# A harness sends its whole history with each call. The window must reach back over all of an episode's
# calls for that to compress away, and only long-distance matching finds repeats that far back.
_COMPRESSION = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, enable_ldm=True)


class _Frame(Record, frozen=True, kw_only=True):
    """Where an episode's trace is: bytes from the start of `traces.zst`."""

    offset: int
    length: int
    crc32: int


class _Line(Episode, frozen=True, kw_only=True):
    """One line of `episodes.jsonl`."""

    trace: _Frame


_FIELDS = Episode.__struct_fields__


class EpisodeStore:
    """The episodes of one run, and their traces. Made by `create`, `open` or `read`."""

    def __init__(self, folder: Path, lock: int | None = None) -> None:
        self.folder = folder
        self.recovered = ""
        """What was cut off when the store was opened after a crash, in one line; else empty."""
        self._lock = lock
        flags = os.O_RDONLY if lock is None else os.O_RDWR | os.O_CREAT
        with usable(folder / TRACES):
            self._traces_fd = os.open(folder / TRACES, flags, 0o644)
        with usable(folder / EPISODES):
            self._lines_fd = os.open(folder / EPISODES, flags, 0o644)
        self._episodes: list[Episode] = []
        self._frames: dict[str, _Frame] = {}
        self._last_line = 0
        self._lines_end = 0
        self._traces_end = 0
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="episode-store")
        self._compressor = zstandard.ZstdCompressor(compression_params=_COMPRESSION)

    @classmethod
    def create(cls, folder: Path) -> Self:
        """A new, empty store, open for append. Raises UsageError where there is one already."""
        if (folder / EPISODES).exists():
            raise UsageError(
                f"{folder} holds a run already: add --resume to go on with it, "
                "or choose another folder"
            )
        store = cls(folder, lock_folder(folder))
        sync_folder(folder)
        return store

    @classmethod
    def open(cls, folder: Path) -> Self:
        """An existing store, open for append; a torn tail is cut off (see `recovered`).

        Raises UsageError where there is none, where another process writes to it, and for a line that
        can't be read.
        """
        _require(folder)
        store = cls(folder, lock_folder(folder))
        try:
            store._recover()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def read(cls, folder: Path) -> Self:
        """An existing store, for reading only, while a writer may be adding to it."""
        _require(folder)
        return cls(folder)

    async def append(self, episode: Episode, trace: Trace) -> None:
        """Store an episode; when this returns it is on the disk. Concurrent calls take turns.

        Raises UsageError when the disk is full or failing: the store is then as it was before.
        """
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, self._append, episode, trace)

    def episodes(self) -> list[Episode]:
        """All episodes in the order of their ends, tries that were repeated included.

        Raises UsageError naming the file and the line that can't be read.
        """
        if self._lock is None:
            self._load()
        return list(self._episodes)

    def latest(self) -> dict[tuple[str, int], Episode]:
        """The last try of each attempt, by task id and attempt: the ones that count."""
        return {(episode.task_id, episode.attempt): episode for episode in self.episodes()}

    def trace(self, episode: Episode) -> Trace:
        """The trace of a stored episode. Raises UsageError when its frame is damaged."""
        if episode.id not in self._frames:
            self.episodes()
        frame = self._frames[episode.id]
        data = self._read(frame)
        if data is None:
            raise UsageError(
                f"{self.folder / TRACES}: the trace of episode {episode.id!r} "
                f"(byte {frame.offset}) is damaged"
            )
        packed = zstandard.ZstdDecompressor().decompress(data)
        return msgspec.msgpack.decode(packed, type=Trace)

    def __iter__(self) -> Iterator[tuple[Episode, Trace]]:
        """All episodes with their traces, one trace in memory at a time."""
        for episode in self.episodes():
            yield episode, self.trace(episode)

    def close(self) -> None:
        """Finish pending appends and release the lock. Closing twice is harmless."""
        self._writer.shutdown()
        if self._lines_fd < 0:
            return
        os.close(self._lines_fd)
        os.close(self._traces_fd)
        if self._lock is not None:
            os.close(self._lock)
        self._lines_fd = self._traces_fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, episode: Episode, trace: Trace) -> None:
        if self._lock is None:
            raise ValueError(f"{self.folder} is open for reading only")
        if episode.id in self._frames:
            raise ValueError(f"episode {episode.id!r} is stored already")
        if os.fstat(self._lines_fd).st_size != self._lines_end:
            raise UsageError(f"{self.folder / EPISODES} was changed by something else: resume")
        for name, descriptor in ((EPISODES, self._lines_fd), (TRACES, self._traces_fd)):
            if not os.fstat(descriptor).st_nlink:
                raise UsageError(f"{self.folder / name} was removed: start the run again")
        try:
            packed = _encode(msgspec.msgpack.encode, trace)
            # What can't be read back must not get into the file; the same goes for the line.
            msgspec.msgpack.decode(packed, type=Trace)
            data = self._compressor.compress(packed)
            frame = _Frame(offset=self._traces_end, length=len(data), crc32=zlib.crc32(data))
            line = _line(episode, frame)
        except (TypeError, msgspec.ValidationError) as error:
            raise UsageError(f"episode {episode.id!r} can't be stored: {error}") from error
        try:
            _write(self._traces_fd, data, frame.offset)
            _write(self._lines_fd, line, self._lines_end)
        except OSError as error:
            self._undo()
            raise UsageError(
                f"{self.folder}: {error.strerror}; episode {episode.id!r} was not stored, "
                "the ones before it are safe: make room and resume"
            ) from error
        self._add(episode, frame, len(line))

    def _undo(self) -> None:
        """Back to the last episode. Where even that fails, the next `open` will do it."""
        try:
            os.ftruncate(self._lines_fd, self._lines_end)
            os.ftruncate(self._traces_fd, self._traces_end)
        except OSError as error:
            raise UsageError(
                f"{self.folder}: {error.strerror}; mend the disk and resume"
            ) from error

    def _add(self, episode: Episode, frame: _Frame, line_length: int) -> None:
        self._episodes.append(episode)
        self._frames[episode.id] = frame
        self._last_line = self._lines_end
        self._lines_end += line_length
        self._traces_end = frame.offset + frame.length

    def _load(self) -> int:
        """Take in the lines that were added. The length of the torn one at the end, in bytes."""
        size = os.fstat(self._lines_fd).st_size
        new = os.pread(self._lines_fd, size - self._lines_end, self._lines_end)
        *lines, rest = new.split(b"\n")
        for index, line in enumerate(lines):
            try:
                read = msgspec.json.decode(line, type=_Line)
            except msgspec.ValidationError as error:
                raise self._bad_line(str(error)) from error
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if rest or index < len(lines) - 1 or self._lock is None:
                    raise self._bad_line(str(error)) from error
                return len(line) + 1
            if read.trace.offset != self._traces_end:
                raise self._bad_line(f"its trace does not start at byte {self._traces_end}")
            if read.id in self._frames:
                raise self._bad_line(f"episode {read.id!r} is there twice")
            self._add(_episode(read), read.trace, len(line) + 1)
        return len(rest)

    def _bad_line(self, what: str) -> UsageError:
        line = len(self._episodes) + 1
        return UsageError(f"{self.folder / EPISODES}, line {line} is damaged ({what}): restore it")

    def _recover(self) -> None:
        """Read everything, and cut off what a crash left behind at the end."""
        torn = self._load()
        if not self._last_is_whole():
            # Each frame is on the disk before its line, and each line before the next frame: only the
            # last one can be without its frame because of a crash.
            frame = self._frames.pop(self._episodes.pop().id)
            torn += self._lines_end - self._last_line
            self._lines_end, self._traces_end = self._last_line, frame.offset
            if not self._last_is_whole():
                raise UsageError(f"{self.folder / TRACES} is damaged: several traces are missing")
        orphaned = max(os.fstat(self._traces_fd).st_size - self._traces_end, 0)
        if self._hides_episodes():
            raise UsageError(
                f"{self.folder / EPISODES} ends before {TRACES} does: lines are missing, restore them"
            )
        if torn or orphaned:
            self._undo()
            self.recovered = (
                f"{self.folder}: an episode was being written when the run was killed; "
                f"cut {torn} bytes from {EPISODES} and {orphaned} from {TRACES}"
            )

    def _hides_episodes(self) -> bool:
        """Whether a whole frame and more follow the last line's: a crash leaves one at most."""
        frame, end = zstandard.ZstdDecompressor().decompressobj(), self._traces_end
        try:
            while not frame.eof and (data := os.pread(self._traces_fd, 1 << 20, end)):
                frame.decompress(data)
                end += len(data)
        except zstandard.ZstdError:
            return False
        more = len(frame.unused_data) + max(os.fstat(self._traces_fd).st_size - end, 0)
        return frame.eof and more > 0

    def _last_is_whole(self) -> bool:
        return not self._episodes or self._read(self._frames[self._episodes[-1].id]) is not None

    def _read(self, frame: _Frame) -> bytes | None:
        """A frame's bytes, or None where they are not what was written."""
        data = os.pread(self._traces_fd, frame.length, frame.offset)
        return data if len(data) == frame.length and zlib.crc32(data) == frame.crc32 else None


def sync_folder(folder: Path) -> None:
    """Make the names of a folder's files survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _require(folder: Path) -> None:
    for name in (EPISODES, TRACES):
        if not (folder / name).exists():
            raise UsageError(f"{folder} holds no run: {name} is missing")


def lock_folder(folder: Path) -> int:
    """Take the lock of a folder of results, made where there is none; close what is returned to free it.

    The kernel frees it when this process ends, however it ends. Raises UsageError where another holds it.
    """
    with usable(folder, "a run needs a folder to write to"):
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise UsageError(
            f"{folder} is being written by process {pid}: wait for it or stop it"
        ) from None
    with contextlib.suppress(OSError):  # the disk is full: then nobody is told who holds it
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _write(descriptor: int, data: bytes, offset: int) -> None:
    """All of the data, on the disk. The kernel takes it in one write unless the disk is full."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written
    os.fsync(descriptor)


def _line(episode: Episode, frame: _Frame) -> bytes:
    line = _Line(**{name: getattr(episode, name) for name in _FIELDS}, trace=frame)
    data = _encode(msgspec.json.encode, line)
    msgspec.json.decode(data, type=_Line)
    return data + b"\n"


def _episode(line: _Line) -> Episode:
    return Episode(**{name: getattr(line, name) for name in _FIELDS})


def _encode(encode: Callable[[Any], bytes], record: Record) -> bytes:
    try:
        return encode(record)
    except (OverflowError, UnicodeEncodeError):
        return encode(storable(msgspec.to_builtins(record, builtin_types=(bytes,))))


def storable(value: Any) -> Any:
    """A copy without what neither UTF-8 nor MessagePack can hold.

    Agents do send half an emoji (a lone surrogate, kept as `\\ud83d`) and integers beyond 64 bits (kept
    as strings); neither may cost an episode.
    """
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
