"""What a rollout server was asked for, and how far it is: a journal that survives `kill -9`.

One line of JSON an event, synced before anybody is told. Leases are not in it: after a restart all that
was not acknowledged is delivered again. So every group arrives at least once; its id tells repetitions.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from rollout.errors import UsageError, usable
from rollout.types import Record

__all__ = ["Conflict", "Entry", "Full", "Order", "Queue", "State"]

State = Literal["queued", "running", "finished", "failed", "acked", "cancelled"]

JOURNAL = "orders.jsonl"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
OPEN: tuple[State, ...] = ("queued", "running")
READY: tuple[State, ...] = ("finished", "failed")
OVER: tuple[State, ...] = ("acked", "cancelled")

REMEMBERED = 10_000
"""Orders that are over and still known by their ids; older ones are forgotten, so memory is bounded."""


class Order(Record, frozen=True, kw_only=True):
    """A group that somebody wants: n attempts at a task."""

    id: str
    """The client's, or one that is made: a file name of letters, digits, dots, dashes."""
    task_id: str
    n: int
    seed: int = 0


class _Event(Record, frozen=True, kw_only=True):
    """A line of the journal."""

    id: str
    state: State
    order: Order | None = None
    reason: str = ""


class Conflict(Exception):
    """The id is taken by another order, or the order is past what was asked of it."""


class Full(Exception):
    """Too many orders are open; come back later."""


@dataclass
class Entry:
    """An order, and how far it is."""

    order: Order
    state: State = "queued"
    reason: str = ""
    """Why it failed."""
    deliveries: int = 0
    """How often it was handed out, since the server started."""
    leased_until: float = 0.0
    """`time.monotonic()`; handed out again after that."""


class Queue:
    """The orders by id, in the order in which they came: all that are not over, and the last that are."""

    def __init__(
        self,
        folder: Path,
        *,
        limit: int,
        lease: float,
        remembered: int = REMEMBERED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`limit`: orders that are open or not yet acknowledged at most; `lease`: seconds.

        Raises UsageError for a journal that can't be read.
        """
        self.entries: dict[str, Entry] = {}
        self._over: deque[Entry] = deque()
        self._forgotten: Counter[State] = Counter()
        self._remembered = remembered
        self._limit, self._lease, self._clock = limit, lease, clock
        self._path = folder / JOURNAL
        with usable(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise UsageError(f"{folder} is served by another process") from error
        self._replay()

    def submit(self, order: Order) -> Entry:
        """Take an order; one that is there already is the same one. Raises Conflict or Full."""
        if (known := self.entries.get(order.id)) is not None:
            if known.order != order:
                raise Conflict(f"group {order.id!r} was asked for with other settings")
            return known
        if sum(entry.state in (*OPEN, *READY) for entry in self.entries.values()) >= self._limit:
            raise Full(
                f"the queue is full, of groups open or not acknowledged (--queue {self._limit})"
            )
        self._write(_Event(id=order.id, state="queued", order=order))
        self.entries[order.id] = Entry(order)
        return self.entries[order.id]

    def waiting(self) -> Iterator[Entry]:
        """Orders that nobody works on."""
        return (entry for entry in self.entries.values() if entry.state == "queued")

    def move(self, entry: Entry, state: State, reason: str = "") -> None:
        """Note a new state. That an order is being worked on is not worth a line."""
        if state != "running":
            self._write(_Event(id=entry.order.id, state=state, reason=reason))
        self._enter(entry, state, reason)

    def counts(self) -> dict[State, int]:
        """How many orders are in each state, the forgotten ones included."""
        return dict(self._forgotten + Counter(entry.state for entry in self.entries.values()))

    def lease(self, most: int) -> list[Entry]:
        """Finished groups that nobody holds, `most` of them at most; they are held from now on."""
        now = self._clock()
        found = [
            entry
            for entry in self.entries.values()
            if entry.state in READY and entry.leased_until <= now
        ][:most]
        for entry in found:
            entry.deliveries += 1
            entry.leased_until = now + self._lease
        return found

    def expiry(self) -> float:
        """Seconds until a lease runs out; infinite when nothing is leased."""
        ends = [e.leased_until for e in self.entries.values() if e.state in READY]
        return max(0.0, min(ends) - self._clock()) if ends else float("inf")

    def ack(self, entry: Entry) -> None:
        """It has arrived. Saying so twice is harmless. Raises Conflict before it is finished."""
        if entry.state in READY:
            self.move(entry, "acked")
        elif entry.state != "acked":
            raise Conflict(f"group {entry.order.id!r} is {entry.state}")

    def close(self) -> None:
        """Release the journal."""
        os.close(self._file)

    def _enter(self, entry: Entry, state: State, reason: str) -> None:
        entry.state, entry.reason = state, reason
        if state in OVER:
            self._over.append(entry)
        while len(self._over) > self._remembered:
            gone = self._over.popleft()
            self._forgotten[gone.state] += 1
            # An id that was forgotten may be that of another order by now.
            if self.entries.get(gone.order.id) is gone:
                del self.entries[gone.order.id]

    def _write(self, event: _Event) -> None:
        with usable(self._path, "make room and start the server again"):
            end = os.fstat(self._file).st_size
            rest = memoryview(msgspec.json.encode(event) + b"\n")
            try:
                while rest:  # a disk that is nearly full takes a part of it
                    rest = rest[os.write(self._file, rest) :]
                os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, end)
                raise

    def _replay(self) -> None:
        """Read the journal; a last line that was cut off is removed: nobody was told of it."""
        data = self._path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.ftruncate(self._file, len(whole))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                event = msgspec.json.decode(line, type=_Event)
                if event.order is not None:
                    self.entries[event.id] = Entry(event.order)
                entry = self.entries[event.id]
            except (msgspec.MsgspecError, KeyError) as error:
                raise UsageError(
                    f"{self._path}, line {number}: {error}; remove the line, or choose another folder"
                ) from error
            self._enter(entry, event.state, event.reason)
