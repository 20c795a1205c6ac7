"""Three meetings are in the one room that fits each, one stays, and nothing else has moved."""

from datetime import UTC, datetime

from environments.claw.evidence import Evidence, Score

MOVED = {
    "evt_701": ("Claims triage", 9, 0, 5, "elm", "a.mbeki@osprey-mutual.example"),
    "evt_702": ("Underwriting sync with Dublin", 10, 30, 7, "oak", "f.gallo@osprey-mutual.example"),
    "evt_703": ("One-pager workshop", 13, 0, 4, "birch", "n.ferro@osprey-mutual.example"),
}


def starts(text: str, hour: int, minute: int) -> bool:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return False
    parsed = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return parsed == datetime(2026, 3, 12, hour, minute, tzinfo=UTC)


def verify(e: Evidence) -> Score:
    calendar = e.audit["calendar"]
    created = calendar["created_events"]
    deleted = {event["event_id"] for event in calendar["deleted"]}
    sent = e.audit["gmail"]["sent_messages"]
    score = Score()

    def rehoused(title: str, hour: int, minute: int, people: int, room: str) -> bool:
        return any(
            event["title"] == title
            and starts(event["start_time"], hour, minute)
            and len(event["attendees"]) == people
            and event["location"].strip().lower() == room
            for event in created
        )

    rooms = all(rehoused(*meeting[:5]) for meeting in MOVED.values())
    score.add(
        0.5, rooms and len(created) == 3, "three meetings are created again, each in its room"
    )
    score.add(0.2, deleted == set(MOVED), "exactly their old events are deleted")
    told = all(
        any(who in m["to"] and room in m["body"].lower() for m in sent)
        for *_, room, who in MOVED.values()
    )
    score.add(0.15, told and len(sent) == 3, "exactly the three organizers are told their room")
    score.add(0.15, e.said("Reinsurance panel"), "the answer names the meeting that fits nowhere")
    others = deleted - set(MOVED)
    score.forbid(bool(others), f"other events were deleted: {sorted(others)}")
    return score
