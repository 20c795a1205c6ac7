"""A world's time: seeded by the task, or the real one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["Clock", "parse_time"]

STEP = timedelta(seconds=1)


class Clock:
    """The time in one world.

    With a start it is that time plus one second for each tool call: every timestamp of an attempt is
    then the same in each run, and in the order of the calls. Without one it is the real time.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self.fixed = start is not None
        self._now = (start or datetime.now(UTC)).astimezone(UTC)

    def tick(self) -> None:
        """Go on to the next call."""
        self._now = self._now + STEP if self.fixed else datetime.now(UTC)

    def now(self) -> datetime:
        """The time of the current call, in UTC; the same however often it is asked."""
        return self._now

    def stamp(self) -> str:
        """`now()` in ISO 8601, as the services write it into their records."""
        return self._now.isoformat()


def parse_time(text: str) -> datetime:
    """An ISO 8601 date or time as an aware datetime; without an offset it is UTC.

    Raises ValueError for anything else.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"is {text!r}; write it like 2026-03-03T08:30:00+01:00") from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
