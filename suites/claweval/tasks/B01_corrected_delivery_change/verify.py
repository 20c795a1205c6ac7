"""The dispatcher gets what applies after the café's correction, and the café gets nothing."""

import re

from environments.claw.evidence import Evidence, Score

DISPATCH = "dispatch@kornhaus.example"


def verify(e: Evidence) -> Score:
    sent = e.audit["gmail"]["sent_messages"]
    mails = [m for m in sent if DISPATCH in m["to"]]
    text = " ".join(f"{m['subject']} {m['body']}" for m in mails)
    score = Score()
    score.add(0.2, len(mails) == 1 and "4471" in text, "one mail to dispatch names order 4471")
    score.add(0.2, re.search(r"\b55\b", text) is not None, "dispatch is told 55 loaves")
    score.add(0.4, re.search(r"\b0?5[:.]45\b", text) is not None, "dispatch is told 05:45")
    score.add(
        0.1,
        bool(mails) and not re.search(r"\b0?6[:.]30\b", text),
        "the dropped time is not passed on",
    )
    score.add(0.1, e.said_any("05:45", "5:45"), "the answer gives the time")
    score.forbid(any("cafe-morgenrot" in m["to"] for m in sent), "mail went to the café")
    return score
