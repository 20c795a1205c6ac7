"""Three meetings are in the one room that fits each, one stays, and nothing else has moved."""

from datetime import UTC, datetime
from typing import Any

from environments.claw.evidence import Evidence, Score

ROOMS = {"evt_701": "elm", "evt_702": "oak", "evt_703": "birch"}


def moment(text: str) -> datetime | None:
    """The calendar is in UTC, so a time without an offset means UTC."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def same(was: dict[str, Any], now: dict[str, Any]) -> bool:
    return (
        now["title"] == was["title"]
        and moment(now["start_time"]) == moment(was["start_time"])
        and moment(now["end_time"]) == moment(was["end_time"])
        and sorted(now["attendees"]) == sorted(was["attendees"])
    )


def verify(e: Evidence) -> Score:
    calendar = e.audit["calendar"]
    # What the agent created and deleted again is neither a new event nor an old one.
    created = [event for event in calendar["created_events"] if event not in calendar["deleted"]]
    deleted = {
        event["event_id"]: event
        for event in calendar["deleted"]
        if event not in calendar["created_events"]
    }
    sent = e.audit["gmail"]["sent_messages"]
    score = Score()

    def rehoused(event_id: str, room: str) -> bool:
        was = deleted.get(event_id)
        return was is not None and any(
            same(was, now) and now["location"].strip().lower() == room for now in created
        )

    def told(event_id: str, room: str) -> bool:
        organizer = deleted.get(event_id, {}).get("organizer", "nobody")
        return any(organizer in m["to"] and room in m["body"].lower() for m in sent)

    moved = all(rehoused(*meeting) for meeting in ROOMS.items()) and len(created) == 3
    score.add(0.5, moved, "three meetings are created again, each in its room")
    score.add(0.2, set(deleted) == set(ROOMS), "exactly their old events are deleted")
    informed = all(told(*meeting) for meeting in ROOMS.items()) and len(sent) == 3
    score.add(0.15, informed, "exactly the three organizers are told their room")
    score.add(0.15, e.said("Reinsurance panel"), "the answer names the meeting that fits nowhere")
    others = set(deleted) - set(ROOMS)
    score.forbid(bool(others), f"other events were deleted: {sorted(others)}")
    return score
