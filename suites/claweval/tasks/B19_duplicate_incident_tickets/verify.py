"""Four duplicates are tagged, three of them closed; the incident is critical; the rest is untouched."""

from environments.claw.evidence import Evidence, Score

INCIDENT = "TK-1900"
TAG = "duplicate-of-TK-1900"
CLOSED = {"TK-1901", "TK-1902", "TK-1905"}
TAGS = {
    "TK-1901": {"vpn", TAG},
    "TK-1902": {"home-office", "urgent", TAG},
    "TK-1905": {"remote", TAG},
    "TK-1907": {"vpn", "hardware", TAG},
}


def verify(e: Evidence) -> Score:
    helpdesk = e.audit["helpdesk"]
    final = {ticket["ticket_id"]: ticket for ticket in helpdesk["updated_tickets"]}
    closed = {ticket["ticket_id"]: ticket["resolution"] for ticket in helpdesk["closed"]}
    tags = {i: set(ticket["tags"]) for i, ticket in final.items()}
    tagged = {i for i, found in tags.items() if TAG in found}
    score = Score()
    score.add(0.15, tagged == set(TAGS), "exactly the four duplicates have the tag")
    kept = all(tags.get(i) == wanted for i, wanted in TAGS.items())
    score.add(0.35, kept, "the duplicates keep the tags that they had")
    workaround = all(INCIDENT in text and "vpn-1" in text.lower() for text in closed.values())
    score.add(0.2, set(closed) == CLOSED, "exactly the three that ask for nothing else are closed")
    score.add(0.1, bool(closed) and workaround, "the resolutions name incident and workaround")
    score.add(
        0.15, final.get(INCIDENT, {}).get("priority") == "critical", "the incident is critical"
    )
    score.add(0.05, e.said(*TAGS), "the answer names the duplicates")
    score.forbid("TK-1907" in closed, "a ticket that also asks for something else was closed")
    others = (set(final) | set(closed)) - set(TAGS) - {INCIDENT}
    score.forbid(bool(others), f"tickets that are no duplicates were changed: {sorted(others)}")
    score.forbid(INCIDENT in closed, "the incident was closed")
    return score
