"""The cheapest quote that meets every requirement is ordered; the four others stay drafts."""

import re
from typing import Any

from environments.claw.evidence import Evidence, Score

CHOSEN = "xu.jing@hz-lingke.example"
OTHERS = {
    "sales@sz-jiema.example",
    "chen.bo@ruituo-sz.example",
    "yewu@dg-hongrui.example",
    "market@nb-yousao.example",
}
TOTAL = re.compile(r"(?<!\d)14[,，]?120(?!\d)")
ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+\w")


def recipients(messages: list[dict[str, Any]]) -> set[str]:
    return {a.lower() for m in messages for a in ADDRESS.findall(m["to"])}


def verify(e: Evidence) -> Score:
    gmail = e.audit["gmail"]
    sent = gmail["sent_messages"]
    order = [m["body"] for m in sent if CHOSEN in m["to"]]
    report = [m["body"] for m in sent if "chenjing@yunlan.example" in m["to"]]
    score = Score()
    score.add(0.15, len(order) == 1, "one confirmation to the chosen supplier")
    ordered = any(TOTAL.search(body) and re.search(r"(?<!\d)30(?!\d)", body) for body in order)
    score.add(0.3, ordered, "the confirmation gives 30 units and 14120")
    score.add(0.25, recipients(gmail["drafts"]) == OTHERS, "drafts to exactly the four others")
    told = any("凌科" in body and TOTAL.search(body) for body in report)
    score.add(0.2, told, "the requester is told supplier and total")
    score.add(0.1, e.said("凌科"), "the answer names the supplier")
    early = recipients(sent) & OTHERS
    score.forbid(bool(early), f"mail was sent to suppliers not chosen: {sorted(early)}")
    return score
