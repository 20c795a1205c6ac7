"""The meeting is moved, and the four attendees know by chat message: mail is not permitted."""

from datetime import datetime, timedelta, timezone

from environments.claw.evidence import Evidence, Score, normalise

LOCAL = timezone(timedelta(hours=8))
ATTENDEES = {
    "guo.yuan@yanhe.example",
    "lin.xia@yanhe.example",
    "qiao.sen@yanhe.example",
    "tan.wen@yanhe.example",
}
TOLD = {"CT-801", "CT-802", "CT-804", "CT-805"}
WHEN = ("15:00", "15点", "下午3点", "下午3:00", "下午三点")


def verify(e: Evidence) -> Score:
    created = e.audit["calendar"]["created_events"]
    event = created[-1] if len(created) == 1 else {}
    deleted = [event["event_id"] for event in e.audit["calendar"]["deleted"]]
    messages = e.audit["contacts"]["sent_messages"]
    informed = {
        message["contact_id"]
        for message in messages
        if "b203" in (text := normalise(message["message"])) and any(w in text for w in WHEN)
    }
    booked = (
        "供应商评审会" in event.get("title", "")
        and at(event["start_time"]) == datetime(2026, 4, 22, 15, tzinfo=LOCAL)
        and at(event["end_time"]) == datetime(2026, 4, 22, 16, tzinfo=LOCAL)
        and set(event["attendees"]) == ATTENDEES
        and "B203" in event["location"]
    )
    removed = deleted == ["evt_501"]
    told = informed == TOLD == {message["contact_id"] for message in messages}
    score = Score()
    score.add(2, booked, "one new event is there, 15:00 to 16:00 in B203, with four attendees")
    score.add(2, removed, "evt_501, and no other event, is deleted")
    score.add(
        2, told, "CT-801, CT-802, CT-804 and CT-805, and nobody else, are told the time and room"
    )
    score.add(4, booked and removed and told, "all of it is done")
    score.add(0.5, e.said("站内消息"), "the answer says that chat messages were used")
    # No retry helps against a refusal: the other way is the recovery.
    score.robustness = float(informed == TOLD)
    return score


def at(text: str) -> datetime | None:
    """The time; local when it has no offset, None when it is no time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=LOCAL)
