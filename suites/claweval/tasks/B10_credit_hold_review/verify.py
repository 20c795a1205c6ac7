"""The report holds the three customers above 10 %; amounts leave out payments and disputes."""

import re

from environments.claw.evidence import Evidence, Score, normalise

OVERDUE = {
    "CUS-1001": ("halden", "45000"),
    "CUS-1002": ("brightwater", "26000"),
    "CUS-1007": ("sable", "30000"),
}
NO_HOLD = ("nordvik", "pelican", "old quay", "tern electrical", "fulmar")


def has(text: str, number: str) -> bool:
    return re.search(rf"(?<!\d){number}(?!\d)", text) is not None


def verify(e: Evidence) -> Score:
    reports = e.audit["crm"]["exported_reports"]
    report = reports[0] if len(reports) == 1 else {"customer_ids": [], "summary": ""}
    sent = e.audit["gmail"]["sent_messages"]
    mail = normalise("\n".join(m["body"] for m in sent if "helen.frost@" in m["to"]))
    score = Score()
    score.add(
        0.4,
        sorted(report["customer_ids"]) == sorted(OVERDUE),
        "one report with the three customers",
    )
    score.add(
        0.2, has(normalise(report["summary"]), "101000"), "its summary gives the sum, 101,000"
    )
    listed = all(name in mail and has(mail, amount) for name, amount in OVERDUE.values())
    score.add(0.2, listed, "Helen is told each customer's amount")
    score.add(
        0.1,
        bool(mail) and not any(name in mail for name in NO_HOLD),
        "she is told of no other customer",
    )
    score.add(0.1, e.said("Halden", "Brightwater", "Sable"), "the answer names the three")
    return score
