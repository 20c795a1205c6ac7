"""恒达 (contract ends first, away in the morning) at 15:30, 泰和 at 11:00, and nobody else."""

from datetime import datetime, timedelta, timezone

from environments.claw.evidence import Evidence, Score, normalise

LOCAL = timezone(timedelta(hours=8))
WANG = "wang.zhengyuan@qiming.example"
# Customer in the title -> start, end, account manager, address of the contact person.
VISITS = {
    "恒达": ("15:30", "16:30", "li.ting@qiming.example", "ma.jianguo@hengda-sl.example"),
    "泰和": ("11:00", "12:00", "guo.kai@qiming.example", "gu.mingyuan@taihe.example"),
}


def verify(e: Evidence) -> Score:
    events = e.audit["calendar"]["created_events"]
    sent = e.audit["gmail"]["sent_messages"]
    done = [len(events) == len(VISITS) == len(sent)]
    score = Score()
    for customer, (start, end, manager, address) in VISITS.items():
        mine = [event for event in events if customer in event["title"]]
        visit = mine[-1] if mine else {"start_time": "", "end_time": "", "attendees": []}
        mails = " ".join(normalise(mail["body"]) for mail in sent if address in mail["to"])
        booked = (at(visit["start_time"]), at(visit["end_time"])) == (start, end)
        done += [booked, start in mails]
        score.add(1, booked, f"{customer}: visited from {start} to {end} on 24 March")
        score.add(
            1,
            set(visit["attendees"]) == {WANG, manager},
            f"{customer}: the attendees are {WANG} and {manager}",
        )
        score.add(1, start in mails, f"{customer}: {address} is told {start}")
    score.add(4, all(done), "both visits and both mails are right, and there are no others")
    score.add(0.5, e.said("恒达", "15:30", "泰和", "11:00"), "the answer names both visits")
    return score


def at(text: str) -> str:
    """HH:MM, local, of a time on 24 March 2026; empty for any other."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return ""
    time = time.astimezone(LOCAL) if time.tzinfo else time
    return time.strftime("%H:%M") if time.date().isoformat() == "2026-03-24" else ""
