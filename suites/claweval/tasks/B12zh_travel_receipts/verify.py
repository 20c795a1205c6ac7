"""The report follows the standard in force: caps, night taxis only, every number once."""

from environments.claw.evidence import Evidence, Score

PAID = ["R-1201", "R-1202", "R-1203", "R-1205", "R-1206", "R-1207", "R-1208"]
TOTAL = 1779


def verify(e: Evidence) -> Score:
    reports = e.audit["finance"]["submitted_reports"]
    report = reports[0] if len(reports) == 1 else {"transactions": [], "total_amount": 0}
    score = Score()
    score.add(
        0.3, sorted(report["transactions"]) == PAID, "one report with the seven numbers, each once"
    )
    score.add(0.4, abs(report["total_amount"] - TOTAL) < 0.005, "its total is 1779")
    score.add(0.1, e.said_any("1779", "1779.00"), "the answer gives the total")
    score.add(
        0.2, e.said("R-1202", "R-1204", "R-1206"), "the answer names the receipts that were cut"
    )
    return score
