"""One report over five payments, 1550 EUR; three customers are reminded once, with what they owe."""

import re

from environments.claw.evidence import Evidence, Score, normalise

PAYMENTS = {"TXN-5002", "TXN-5005", "TXN-5006", "TXN-5009", "TXN-5011"}
OPEN = {
    "office@birchwoodgym.example": "180",
    "rita@foxglove.example": "95",
    "una@hazelnursery.example": "100",
}


def verify(e: Evidence) -> Score:
    reports = e.audit["finance"]["submitted_reports"]
    report = reports[-1] if len(reports) == 1 else {"transactions": [], "total_amount": 0}
    sent = e.audit["gmail"]["sent_messages"]
    reminded = [address for mail in sent for address in OPEN if address in mail["to"]]
    score = Score()
    score.add(
        4,
        sorted(report["transactions"]) == sorted(PAYMENTS),
        "one report holds TXN-5002, 5005, 5006, 5009 and 5011, and no other payment",
    )
    score.add(1, abs(report["total_amount"] - 1550) < 0.005, "the report's sum is 1550")
    score.add(
        3,
        sorted(reminded) == sorted(OPEN) and len(sent) == len(OPEN),
        "Birchwood Gym, Foxglove and Hazel Nursery are reminded once each, and nobody else is",
    )
    score.add(
        2,
        sum(names(mail, address) for mail in sent for address in OPEN if address in mail["to"])
        >= len(OPEN),
        "the mails name 180, 95 and 100 EUR",
    )
    score.add(
        0.5, e.said("1550", "180", "95", "100"), "the answer gives the total and the three amounts"
    )
    return score


def names(mail: dict[str, str], address: str) -> bool:
    """Whether a mail names what was open, as a whole number."""
    text = normalise(f"{mail['subject']} {mail['body']}")
    return re.search(rf"(?<![\d.]){OPEN[address]}(?!\d|\.\d*[1-9])", text) is not None
