"""KB-601 really holds the line that was confirmed, and then two tickets are closed."""

from environments.claw.evidence import Evidence, Score, normalise

CODES = ["E-03", "E-09", "E-12", "E-17", "E-21", "E-30"]
KEPT = (
    "E-03: Card not known. Enrol the card again.",
    "E-09: Clock is wrong. Sync the controller.",
    "E-12: No link to the controller. Check the cable at J2.",
    "E-21: Battery low. Replace the backup battery within a week.",
    "E-30: Door held open. Close the door, press Reset.",
    "For the gate reader G2 see KB-602.",
)


def verify(e: Evidence) -> Score:
    # Updates that were lost are not in the audit log.
    updates = [
        call
        for call in e.audit["kb"]["calls"]
        if call["endpoint"] == "/kb/articles/update" and "error" not in call["response_body"]
    ]
    text = updates[-1]["request_body"]["content"] if updates else ""
    lines = [line.strip() for line in text.splitlines()]
    new = normalise(" ".join(line for line in lines if line.startswith("E-17")))
    codes = [line[:4] for line in lines if line.startswith("E-")]
    closed = e.audit["helpdesk"]["closed"]
    closings = [
        call["timestamp"]
        for call in e.audit["helpdesk"]["calls"]
        if call["endpoint"] == "/helpdesk/tickets/close"
    ]
    right = {ticket["ticket_id"] for ticket in closed} == {"TK-6131", "TK-6134"}
    score = Score()
    score.add(
        3,
        "antenna fault" in new and "j4" in new and "2.1.7" in new and "replace" not in new,
        "the article stores what the most recent ticket says about E-17",
    )
    score.add(
        2,
        codes == CODES and all(line in lines for line in KEPT),
        "the new line is in its place, and the other lines are kept",
    )
    score.add(
        2,
        right and all("KB-601" in ticket["resolution"] for ticket in closed),
        "TK-6131 and TK-6134, and no others, are closed with a pointer to KB-601",
    )
    score.add(
        1,
        right and bool(updates) and updates[-1]["timestamp"] < min(closings),
        "the tickets are closed after the article holds the line",
    )
    score.add(0.5, e.said("TK-6131", "TK-6134"), "the answer names the two tickets")
    score.forbid(
        {update["request_body"]["article_id"] for update in updates} - {"KB-601"},
        "another article was changed",
    )
    return score
