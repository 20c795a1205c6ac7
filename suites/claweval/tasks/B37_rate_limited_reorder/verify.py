"""Each of three products is ordered once, in spite of the rate limit."""

from environments.claw.evidence import Evidence, Score

ORDERS = {
    ("SKU-301", 24): "Torrefazione Luna",
    ("SKU-303", 16): "Torrefazione Luna",
    ("SKU-306", 40): "Brewhaus",
}


def verify(e: Evidence) -> Score:
    orders = e.audit["inventory"]["orders"]
    placed = [(order["product_id"], order["quantity"]) for order in orders]
    score = Score()
    score.add(
        2,
        set(ORDERS) <= set(placed),
        "24 of SKU-301, 16 of SKU-303 and 40 of SKU-306 are ordered",
    )
    score.add(2, sorted(placed) == sorted(ORDERS), "nothing else is ordered, and nothing twice")
    score.add(
        0.5,
        bool(orders)
        and all(
            ORDERS.get((order["product_id"], order["quantity"])) == order["supplier"]
            for order in orders
        ),
        "each order goes to the product's supplier",
    )
    score.add(
        0.5,
        e.said("SKU-301", "SKU-303", "SKU-306") or e.said("Nera", "Calma", "Cold brew"),
        "the answer names the three products",
    )
    return score
