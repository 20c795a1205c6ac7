"""Drafts to exactly the journalists who are due today, one list to Ines, nothing sent outside."""

import re
from typing import Any

from environments.claw.evidence import Evidence, Score

DUE = {
    "h.solberg@kystradio.example": ("kystradio", "12:00"),
    "j.okafor@dailyharbour.example": ("daily harbour", "15:00"),
    "t.bianchi@lloydreview.example": ("lloyd review", "18:00"),
}
NOT_DUE = ("schiffahrt heute", "ports et mers", "merisanomat")
ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+\w")


def recipients(messages: list[dict[str, Any]]) -> set[str]:
    return {a.lower() for m in messages for a in ADDRESS.findall(m["to"])}


def verify(e: Evidence) -> Score:
    gmail = e.audit["gmail"]
    drafts = gmail["drafts"]
    lists = [m["body"].lower() for m in gmail["sent_messages"] if "ines.falk@" in m["to"]]
    text = lists[0] if len(lists) == 1 else ""
    places = [text.find(outlet) for outlet, _ in DUE.values()]
    score = Score()
    score.add(
        0.45, recipients(drafts) == set(DUE), "drafts to exactly the three journalists due today"
    )
    named = all(
        any(who in m["to"].lower() and time in m["body"] for m in drafts)
        for who, (_, time) in DUE.items()
    )
    score.add(0.1, named, "every draft names its deadline")
    full = bool(text) and all(outlet in text and time in text for outlet, time in DUE.values())
    score.add(0.25, full, "Ines's list has the three outlets and times")
    score.add(0.1, full and places == sorted(places), "the list is in order of time")
    score.add(0.1, full and not any(name in text for name in NOT_DUE), "the list has nothing else")
    outside = {
        a for a in recipients(gmail["sent_messages"]) if not a.endswith("@fjordline.example")
    }
    score.forbid(bool(outside), f"mail was sent outside: {sorted(outside)}")
    return score
