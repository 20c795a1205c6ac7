"""Each affected customer gets one mail, nobody else does, and the replacements are ordered."""

import re
from typing import Any

from environments.claw.evidence import Evidence, Score

AFFECTED = {
    "lucy.marsh@ashdown-vet.example": ("L2409", 2),
    "ivy.cole@larchhouse.example": ("L2410", 3),
    "noor.aziz@bellhaven.example": ("L2411", 4),
    "femi.bello@eastgate.example": ("L2412", 6),
}
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six")


def says(mail: dict[str, Any], lot: str, pumps: int) -> bool:
    text = f"{mail['subject']} {mail['body']}"
    counted = re.search(rf"\b({pumps}|{NUMBERS[pumps]})\b", text, re.IGNORECASE)
    return "FSN-26-03" in text and lot in text and counted is not None


def verify(e: Evidence) -> Score:
    sent = e.audit["gmail"]["sent_messages"]
    orders = e.audit["inventory"]["orders"]
    score = Score()
    missing = []
    for who, (lot, pumps) in AFFECTED.items():
        mails = [m for m in sent if who in m["to"]]
        if len(mails) != 1 or not says(mails[0], lot, pumps):
            missing.append(who)
    score.add(
        0.45, not missing, f"one mail with notice, lot and pumps to each customer; not: {missing}"
    )
    ordered = [(order["product_id"], order["quantity"]) for order in orders]
    score.add(0.4, ordered == [("PMP-1603", 15)], "one order: 15 Estuary 2")
    score.add(0.15, e.said("15"), "the answer gives 15 pumps")
    outside = [m["to"] for m in sent if "@severn-medical.example" not in m["to"]]
    others = [to for to in outside if not any(who in to for who in AFFECTED)]
    score.forbid(bool(others), f"mail went to people who are not affected: {others}")
    return score
