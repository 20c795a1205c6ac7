"""One report holds exactly the active VIP customers last contacted before 2026."""

import re

from environments.claw.evidence import Evidence, Score

QUIET = {
    "CUS-0802": "Borrowdale Paper",
    "CUS-0805": "Eskdale Energy",
    "CUS-0807": "Garsdale Glass",
}


def verify(e: Evidence) -> Score:
    reports = e.audit["crm"]["exported_reports"]
    report = reports[0] if len(reports) == 1 else {"customer_ids": [], "summary": ""}
    summary = report["summary"].lower()
    score = Score()
    score.add(0.1, len(reports) == 1, "exactly one report was exported")
    score.add(
        0.5, sorted(report["customer_ids"]) == sorted(QUIET), "it holds exactly the quiet customers"
    )
    named = all(name.lower() in summary for name in QUIET.values())
    score.add(0.1, named, "its summary names them")
    score.add(0.1, re.search(r"\b(3|three)\b", summary) is not None, "its summary counts them")
    score.add(0.2, e.said(*QUIET.values()), "the answer names them")
    return score
