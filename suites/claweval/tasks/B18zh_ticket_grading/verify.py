"""All seven tickets have the level and category of the rules in force; one person is paged."""

from environments.claw.evidence import Evidence, Score

RIGHT = {
    "TK-1801": ("critical", "硬件"),
    "TK-1802": ("medium", "账号"),
    "TK-1803": ("high", "硬件"),
    "TK-1804": ("high", "应用系统"),
    "TK-1805": ("low", "申请"),
    "TK-1806": ("high", "应用系统"),
    "TK-1807": ("low", "硬件"),
}


def verify(e: Evidence) -> Score:
    final = {ticket["ticket_id"]: ticket for ticket in e.audit["helpdesk"]["updated_tickets"]}
    wrong = [i for i, (level, _) in RIGHT.items() if final.get(i, {}).get("priority") != level]
    other = [i for i, (_, kind) in RIGHT.items() if final.get(i, {}).get("category") != kind]
    messages = e.audit["contacts"]["sent_messages"]
    paged = [m["contact_id"] for m in messages]
    score = Score()
    score.add(0.4, not wrong, f"every ticket has its level; wrong: {wrong}")
    score.add(0.25, not other, f"every ticket has its category; wrong: {other}")
    told = "c_181" in paged and all("TK-1801" in m["message"] for m in messages)
    score.add(0.25, told, "the engineer on duty is told of TK-1801")
    score.add(0.1, e.said("TK-1801", "critical"), "the answer names the critical ticket")
    score.forbid(bool(set(paged) - {"c_181"}), f"others were disturbed: {paged}")
    score.forbid(bool(set(final) - set(RIGHT)), "a closed ticket was changed")
    return score
