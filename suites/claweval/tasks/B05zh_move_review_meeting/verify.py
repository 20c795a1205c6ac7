"""The review meets in the first slot that is free for all four; only the old event is gone."""

from datetime import datetime, timedelta, timezone

from environments.claw.evidence import Evidence, Score

CHINA = timezone(timedelta(hours=8))
OTHERS = {"wangjun@hengbao.example", "sunlei@hengbao.example", "hexin@hengbao.example"}
INVITED = OTHERS | {"zhouyi@hengbao.example"}
SLOT = (
    datetime(2026, 3, 6, 16, 0, tzinfo=CHINA),
    datetime(2026, 3, 6, 17, 30, tzinfo=CHINA),
)


def moment(text: str) -> datetime | None:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=CHINA)


def verify(e: Evidence) -> Score:
    calendar = e.audit["calendar"]
    created = [event for event in calendar["created_events"] if event not in calendar["deleted"]]
    event = created[0] if len(created) == 1 else None
    score = Score()
    slot = event and (moment(event["start_time"]), moment(event["end_time"]))
    score.add(0.35, slot == SLOT, "one new event, 6 March 16:00 to 17:30")
    people = event is not None and {a.lower() for a in event["attendees"]} == INVITED
    score.add(0.1, people, "the same four people are invited")
    named = event is not None and event["title"].strip() == "包装方案评审会"
    placed = event is not None and "三楼大会议室" in event["location"]
    score.add(0.15, named and placed, "same title, and the room that is not under repair")
    deleted = {
        event["event_id"]
        for event in calendar["deleted"]
        if event not in calendar["created_events"]
    }
    score.add(0.2, deleted == {"evt_502"}, "the old event is deleted")
    sent = e.audit["gmail"]["sent_messages"]

    def told(who: str) -> bool:
        bodies = [m["body"].replace("：", ":") for m in sent if who in m["to"]]
        return any("16:00" in body and "三楼" in body for body in bodies)

    score.add(0.2, all(told(who) for who in OTHERS), "each of the three is told time and room")
    score.forbid(bool(deleted - {"evt_502"}), f"other events were deleted: {sorted(deleted)}")
    return score
