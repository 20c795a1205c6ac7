"""The report holds each exactly matching transaction once; both claimants in error are asked."""

from environments.claw.evidence import Evidence, Score

MATCHED = ["TXN-1101", "TXN-1102", "TXN-1104", "TXN-1105", "TXN-1106", "TXN-1107", "TXN-1108"]
TOTAL = 859.45
ASKED = ("bram.visser@millbrook.example", "deniz.acar@millbrook.example")


def verify(e: Evidence) -> Score:
    reports = e.audit["finance"]["submitted_reports"]
    report = reports[0] if len(reports) == 1 else {"transactions": [], "total_amount": 0}
    sent = e.audit["gmail"]["sent_messages"]

    def asked(who: str, *facts: str) -> bool:
        return any(who in m["to"] and all(fact in m["body"] for fact in facts) for m in sent)

    score = Score()
    score.add(0.35, sorted(report["transactions"]) == MATCHED, "one report with the seven matches")
    score.add(0.25, abs(report["total_amount"] - TOTAL) < 0.005, "its total is 859.45")
    score.add(0.15, asked(ASKED[0], "84.60", "86.40"), "Bram is asked about 84.60 against 86.40")
    score.add(0.15, asked(ASKED[1], "119"), "Deniz is asked about the 119.00")
    score.add(
        0.1, e.said("859.45") and e.said_any("119", "Seeblick"), "the answer gives the result"
    )
    others = [m["to"] for m in sent if not any(who in m["to"] for who in ASKED)]
    score.forbid(bool(others), f"mail went to others: {others}")
    return score
