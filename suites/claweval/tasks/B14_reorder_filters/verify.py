"""The orders are exactly the three that are due, in size and supplier."""

from environments.claw.evidence import Evidence, Score

DUE = {
    "FLT-1401": (48, "aerovent"),
    "FLT-1403": (13, "klarfil"),
    "FLT-1407": (15, "sommer"),
}


def verify(e: Evidence) -> Score:
    orders = e.audit["inventory"]["orders"]
    ordered = [order["product_id"] for order in orders]
    sizes = {order["product_id"]: order["quantity"] for order in orders}
    score = Score()
    score.add(
        0.4, sorted(ordered) == sorted(DUE), "one order each for exactly the three products due"
    )
    right = all(sizes.get(product) == size for product, (size, _) in DUE.items())
    score.add(0.35, right, "the quantities fill up to the target levels")
    suppliers = {order["product_id"]: (order["supplier"] or "").lower() for order in orders}
    named = all(name in suppliers.get(product, "") for product, (_, name) in DUE.items())
    score.add(0.15, named, "each order goes to the supplier on the record")
    score.add(0.1, e.said(*DUE) or e.said("48", "13", "15"), "the answer tells what was ordered")
    return score
