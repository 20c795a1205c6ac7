"""Three cups QJ-0412-B are broken, one is in stock: two are ordered, and the customer is told three."""

import re

from environments.claw.evidence import Evidence, Score, normalise

CUSTOMER = "liang.shuyi@postbox.example"


def verify(e: Evidence) -> Score:
    orders = [(order["product_id"], order["quantity"]) for order in e.audit["inventory"]["orders"]]
    suppliers = {order["supplier"] for order in e.audit["inventory"]["orders"]}
    tickets = {ticket["ticket_id"]: ticket for ticket in e.audit["helpdesk"]["updated_tickets"]}
    ticket = tickets.get("TK-5207", {})
    sent = e.audit["gmail"]["sent_messages"]
    mails = [normalise(f"{m['subject']} {m['body']}") for m in sent if CUSTOMER in m["to"]]
    text = " ".join(mails)
    ordered = orders == [("QJ-0412-B", 2)]
    tagged = (
        set(tickets) == {"TK-5207"}
        and ticket.get("tags") == ["补发"]
        and ticket.get("priority") == "high"
    )
    told = (
        "qj-0412-b" in text
        and "tk-5207" in text
        and re.search(
            r"(?<!\d)[3三](?:只|个|件|枚|盏)|[x×*] ?3(?!\d)|数量[^\d,。;]{0,6}3(?!\d)", text
        )
    )
    score = Score()
    score.add(2, ordered, "one order is placed, for two QJ-0412-B, and no other")
    score.add(1, suppliers == {"龙窑陶艺"}, "the order goes to the product's supplier, 龙窑陶艺")
    score.add(2, tagged, "TK-5207, and no other ticket, has the tag 补发 and the priority high")
    score.add(2, told, "the customer is told QJ-0412-B, three pieces and TK-5207")
    score.add(4, ordered and tagged and told, "all of it is done")
    score.add(0.5, e.said("QJ-0412-B"), "the answer names the product")
    score.forbid(e.audit["helpdesk"]["closed"], "a ticket was closed")
    return score
