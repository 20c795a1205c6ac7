"""A calendar that several people share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from environments.claw.clock import parse_time
from environments.claw.service import EMPTY_LIST, Crash, Failure, Service, find, route
from rollout.types import JsonObject


class Calendar(Service):
    prefix = "calendar"
    fixtures = {"CALENDAR_FIXTURES": "calendar/events.json"}
    records = ("deleted", "created_events")

    def load(self) -> None:
        self.events = self.rows("CALENDAR_FIXTURES", "event_id", "start_time")
        if self.events and not self.clock.fixed:
            self._shift_to_tomorrow()

    def _shift_to_tomorrow(self) -> None:
        """Without a clock of its own, a task's earliest event is tomorrow, as claw-eval has it.

        The hours stay what they are in the fixture, whatever its offset, and become UTC.
        """
        earliest = min(parse_time(event["start_time"]) for event in self.events)
        tomorrow = self.clock.now() + timedelta(days=1)
        hour = earliest.time().replace(second=0, microsecond=0)
        shift = datetime.combine(tomorrow, hour, UTC) - earliest
        for event in self.events:
            for key in ("start_time", "end_time"):
                if event.get(key):
                    moved = parse_time(event[key]) + shift
                    event[key] = moved.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _between(self, date: str, days: int) -> list[JsonObject]:
        """Events that start on `date` (YYYY-MM-DD, UTC) or in the days after it, in order."""
        try:
            first = datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC)
        except ValueError:
            raise Failure(f"Invalid date format: {date}") from None
        last = first + timedelta(days=days)
        found = [
            event
            for event in self.events
            if (start := self._start(event)) is not None and first <= start < last
        ]
        return sorted(found, key=lambda event: str(event["start_time"]))

    def _start(self, event: JsonObject) -> datetime | None:
        """When an event starts. The agent may have created it with a time that is none.

        The original crashes on such an event, and on a time without an offset, whenever it lists events.
        In a world with a clock of its own the one is never listed, and the other is UTC.
        """
        text = event["start_time"]
        try:
            start = datetime.fromisoformat(text)
        except ValueError:
            start = None
        if not self.clock.fixed and (start is None or start.tzinfo is None):
            raise Crash
        return start.replace(tzinfo=UTC) if start and start.tzinfo is None else start

    @route("/events", null={"date": "2026-03-02"})
    def list_events(self, date: str, days: int = 1) -> JsonObject:
        found = self._between(date, days)
        return {"events": found, "total": len(found)}

    @route("/events/get")
    def event(self, event_id: str) -> JsonObject:
        return find(self.events, "event_id", event_id, "Event")

    @route("/events/create")
    def create(
        self,
        title: str,
        start_time: str,
        end_time: str,
        attendees: list[str] = EMPTY_LIST,
        location: str = "",
    ) -> JsonObject:
        event = {
            "event_id": f"evt_{len(self.events) + 1:03d}",
            "title": title,
            "start_time": start_time,
            "end_time": end_time,
            "attendees": attendees,
            "location": location,
            "recurring": False,
        }
        self.events.append(event)
        self.record("created_events", event)
        return {"status": "created", "event": event}

    @route("/user_events")
    def user_events(self, user: str, date: str) -> JsonObject:
        day = self._between(date, 1)
        found = [event for event in day if any(user in name for name in event.get("attendees", []))]
        return {"events": found, "total": len(found), "user": user}

    @route("/events/delete")
    def delete(self, event_id: str) -> JsonObject:
        event = find(self.events, "event_id", event_id, "Event")
        self.events.remove(event)
        self.record("deleted", event)
        return {"status": "deleted", "event": event}
