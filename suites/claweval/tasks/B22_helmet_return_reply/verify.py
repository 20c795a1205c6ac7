"""Ingrid is told the rule for unopened safety gear: 21 days after 12 February, form RS-2."""

from environments.claw.evidence import Evidence, Score

INGRID = "ingrid.solberg@postkassen.example"
OTHER_DATES = ("2026-03-14", "2026-04-13", "2026-03-04", "2026-03-06")


def verify(e: Evidence) -> Score:
    sent = e.audit["gmail"]["sent_messages"]
    bodies = " ".join(mail["body"] for mail in sent if INGRID in mail["to"])
    score = Score()
    score.add(
        4,
        "2026-03-05" in bodies and not any(date in bodies for date in OTHER_DATES),
        "Ingrid is told that 2026-03-05 is the last day",
    )
    score.add(3, "RS-2" in bodies, "Ingrid is told to enclose form RS-2")
    score.add(1, bool(bodies) and len(sent) == 1, "one mail is sent, to Ingrid")
    score.add(0.5, e.said_any("2026-03-05", "5 March", "March 5"), "the answer names the date")
    return score
