"""How a site can misbehave: the same way whenever the seed is the same."""

from __future__ import annotations

from random import Random

import msgspec

from rollout.errors import UsageError
from rollout.types import JsonObject, Record

__all__ = ["Faults", "Mischief", "parse_faults"]

LAYOUTS = 3


class Faults(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes wrong on one site. What is listed goes wrong once an episode.

    Paths are those of pages, `/cart/add` for instance; parts are the names that a site gives to
    elements of its pages (`Site.part`).
    """

    moved: bool = False
    """Blocks of every page change their places."""
    slow: float = 0.0
    """Seconds that the first answer of each page is late."""
    absent: tuple[str, ...] = ()
    """Parts that are not there at first; they are when the page is loaded again."""
    lost: tuple[str, ...] = ()
    """Paths of forms that are answered as ever, but change nothing."""
    broken: tuple[str, ...] = ()
    """Paths that answer with an error, 500."""


def parse_faults(faults: JsonObject, sites: tuple[str, ...]) -> dict[str, Faults]:
    """Site -> its faults, from `{"shop": {"lost": ["/cart/add"]}}`. Raises UsageError."""
    parsed = {}
    for site, data in faults.items():
        if site not in sites:
            raise UsageError(
                f"faults.{site}: no such site here; the task has: {', '.join(sites) or 'none'}"
            )
        try:
            parsed[site] = msgspec.convert(data, Faults)
        except msgspec.ValidationError as error:
            known = ", ".join(Faults.__struct_fields__)
            raise UsageError(f"faults.{site}: {error}; known faults: {known}") from error
    return parsed


class Mischief:
    """The faults of one site in one episode, and which of them have happened."""

    def __init__(self, faults: Faults, seed: int) -> None:
        self._faults = faults
        self._happened: set[tuple[str, str]] = set()
        random = Random(f"layout {seed}")
        self.layout = random.randint(1, LAYOUTS) if faults.moved else 0
        """Which of the other layouts the pages have; 0 is the usual one."""
        self.shift = random.randint(12, 48) if faults.moved else 0
        """How far the pages' content is shifted, pixels."""

    def lateness(self, path: str) -> float:
        """Seconds to wait before this path is answered."""
        return self._faults.slow if self._faults.slow and self._first("slow", path) else 0.0

    def is_absent(self, part: str) -> bool:
        """Whether the part is left out this time."""
        return part in self._faults.absent and self._first("absent", part)

    def is_lost(self, path: str) -> bool:
        """Whether what this path changes is lost this time."""
        return path in self._faults.lost and self._first("lost", path)

    def is_broken(self, path: str) -> bool:
        """Whether this path fails this time."""
        return path in self._faults.broken and self._first("broken", path)

    def _first(self, kind: str, key: str) -> bool:
        new = (kind, key) not in self._happened
        self._happened.add((kind, key))
        return new
