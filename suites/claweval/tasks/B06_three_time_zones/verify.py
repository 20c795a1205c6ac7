"""The call starts at 12:30 UTC, and each guest knows it as the time on their own clock."""

import re
from datetime import UTC, datetime

from environments.claw.evidence import Evidence, Score

LENA, RAFAEL = "lena.hoffmann@spree-optics.example", "rafael.moura@litoral.example"
INVITED = {"jordan.pell@tidewater-lab.example", LENA, RAFAEL}
SLOT = (
    datetime(2026, 3, 10, 12, 30, tzinfo=UTC),
    datetime(2026, 3, 10, 13, 15, tzinfo=UTC),
)


def moment(text: str) -> datetime | None:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def verify(e: Evidence) -> Score:
    created = e.audit["calendar"]["created_events"]
    event = created[0] if len(created) == 1 else None
    sent = e.audit["gmail"]["sent_messages"]

    def told(who: str, time: str) -> bool:
        return any(who in m["to"] and re.search(time, m["body"]) for m in sent)

    score = Score()
    slot = event and (moment(event["start_time"]), moment(event["end_time"]))
    score.add(0.4, slot == SLOT, "one event on 10 March, 12:30 to 13:15 UTC")
    people = event is not None and {a.lower() for a in event["attendees"]} == INVITED
    score.add(0.1, people, "exactly the three people are invited")
    score.add(0.2, told(LENA, r"\b13:30\b"), "Lena is told 13:30")
    score.add(0.2, told(RAFAEL, r"\b0?9:30\b"), "Rafael is told 09:30")
    score.add(0.1, e.said_any("08:30", "8:30"), "the answer gives Boston time")
    return score
