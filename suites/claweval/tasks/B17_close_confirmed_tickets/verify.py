"""Exactly the tickets that their reporters confirmed are closed."""

from environments.claw.evidence import Evidence, Score

CONFIRMED = {
    "TK-1701": ("roller", "scanner"),
    "TK-1705": ("permission", "access", "mailbox"),
    "TK-1709": ("bulb", "lamp"),
}


def verify(e: Evidence) -> Score:
    closed = {t["ticket_id"]: t["resolution"].lower() for t in e.audit["helpdesk"]["closed"]}
    score = Score()
    score.add(0.6, set(closed) == set(CONFIRMED), "exactly the three confirmed tickets are closed")
    reasons = all(
        any(word in closed.get(ticket, "") for word in words) for ticket, words in CONFIRMED.items()
    )
    score.add(0.2, reasons, "each resolution says what was done")
    score.add(0.2, e.said(*CONFIRMED), "the answer names the three")
    others = sorted(set(closed) - set(CONFIRMED))
    score.forbid(bool(others), f"tickets without a confirmation were closed: {others}")
    return score
