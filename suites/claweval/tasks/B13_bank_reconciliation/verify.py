"""Outstanding items, reconciled balance and the three corrections, all from the corrected statement."""

import re

from environments.claw.evidence import Evidence, Score, normalise

OUTSTANDING = ["LED-1307", "LED-1311"]
NET = 2070.00
BALANCE = "17215.35"


def verify(e: Evidence) -> Score:
    reports = e.audit["finance"]["submitted_reports"]
    report = reports[0] if len(reports) == 1 else {"transactions": [], "total_amount": 0}
    sent = e.audit["gmail"]["sent_messages"]
    mail = normalise("\n".join(m["body"] for m in sent if "nadia.cole@" in m["to"]))

    def gives(number: str) -> bool:
        return re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", mail) is not None

    score = Score()
    score.add(
        0.2,
        sorted(report["transactions"]) == OUTSTANDING,
        "one report with the two outstanding items",
    )
    score.add(0.15, abs(report["total_amount"] - NET) < 0.005, "its total is 2,070.00")
    score.add(0.3, gives(BALANCE), "Nadia is told the reconciled balance")
    corrected = gives("35") and gives("420") and (gives("45") or gives("549"))
    score.add(0.25, corrected, "she is told of fee, returned cheque and mistyped amount")
    score.add(0.1, e.said(BALANCE), "the answer gives the balance")
    return score
