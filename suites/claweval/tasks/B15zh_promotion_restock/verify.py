"""Exactly the three shortages are ordered, in whole cases, and the promotion team knows."""

import re

from environments.claw.evidence import Evidence, Score

DUE = {"TG-1501": 120, "TG-1503": 20, "TG-1504": 12}
SUPPLIERS = {"TG-1501": "甬江食品厂", "TG-1503": "苏点食品", "TG-1504": "清明斋"}


def verify(e: Evidence) -> Score:
    orders = e.audit["inventory"]["orders"]
    sizes = {order["product_id"]: order["quantity"] for order in orders}
    suppliers = {order["product_id"]: order["supplier"] for order in orders}
    sent = e.audit["gmail"]["sent_messages"]
    mails = [m["body"] for m in sent if "wuyan@" in m["to"]]
    score = Score()
    score.add(
        0.2,
        sorted(o["product_id"] for o in orders) == sorted(DUE),
        "one order each for the three products",
    )
    score.add(0.4, sizes == DUE, "the quantities are 120, 20 and 12")
    score.add(0.1, suppliers == SUPPLIERS, "each order goes to the supplier on the record")
    told = any(
        all(p in body and re.search(rf"(?<!\d){n}(?!\d)", body) for p, n in DUE.items())
        for body in mails
    )
    score.add(0.2, told, "Wu Yan is told products and quantities")
    score.add(0.1, e.said("120", "20", "12"), "the answer gives the quantities")
    return score
