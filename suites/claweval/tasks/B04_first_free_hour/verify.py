"""One event in the first hour that is free for all three, with the right people."""

from datetime import UTC, datetime

from environments.claw.evidence import Evidence, Score

INVITED = {
    "dana.whitlock@larkhill.example",
    "priya.raman@larkhill.example",
    "tomas.ibarra@larkhill.example",
}
SLOT = (
    datetime(2026, 3, 5, 14, 30, tzinfo=UTC),
    datetime(2026, 3, 5, 15, 30, tzinfo=UTC),
)


def moment(text: str) -> datetime | None:
    """London is on UTC that day, so a time without an offset means UTC."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def verify(e: Evidence) -> Score:
    created = e.audit["calendar"]["created_events"]
    event = created[0] if len(created) == 1 else None
    score = Score()
    score.add(0.1, event is not None, "exactly one event was created")
    slot = event and (moment(event["start_time"]), moment(event["end_time"]))
    score.add(0.4, slot == SLOT, "it is on 5 March, 14:30 to 15:30")
    people = event is not None and {a.lower() for a in event["attendees"]} == INVITED
    score.add(0.25, people, "it invites exactly the three people")
    named = event is not None and "budget review" in event["title"].lower()
    placed = event is not None and "atrium" in event["location"].lower()
    score.add(0.1, named and placed, "title and room are as asked")
    score.add(0.15, e.said_any("14:30", "2:30"), "the answer gives the time")
    return score
