"""The event is the 19:25 with the longer crossing of that Sunday; the fare is 286 + 74 + 20."""

from datetime import datetime, timedelta, timezone

from environments.claw.evidence import Evidence, Score

LOCAL = timezone(timedelta(hours=2))
DEPARTURE = datetime(2026, 6, 7, 19, 25, tzinfo=LOCAL)
ARRIVAL = datetime(2026, 6, 7, 20, 35, tzinfo=LOCAL)


def verify(e: Evidence) -> Score:
    events = [
        event
        for event in e.audit["calendar"]["created_events"]
        if "ulvsund" in event["title"].casefold()
    ]
    last = events[-1] if events else {"start_time": "", "end_time": ""}
    score = Score()
    score.add(
        3, len(events) == 1 and at(last["start_time"]) == DEPARTURE, "the event starts at 19:25"
    )
    score.add(3, len(events) == 1 and at(last["end_time"]) == ARRIVAL, "the event ends at 20:35")
    score.add(3, e.said("380"), "the answer names the total fare, 380")
    score.add(0.2, e.said_any("19:25", "7:25"), "the answer names the departure, 19:25")
    score.forbid(e.audit["calendar"]["deleted"], "an event was deleted from the calendar")
    return score


def at(text: str) -> datetime | None:
    """The time; local when it has no offset, None when it is no time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=LOCAL)
