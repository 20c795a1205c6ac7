"""Three orders for what is missing, the window of hall 7 as it was moved, and the right Jonas told."""

from datetime import datetime, timedelta, timezone

from environments.claw.evidence import Evidence, Score, normalise

LOCAL = timezone(timedelta(hours=2))
ORDERS = [
    ("PRD-11", 3, "Glaswerk Ost"),
    ("PRD-21", 1, "Stativbau Kern"),
    ("PRD-31", 90, "Druckhaus Elbe"),
]
WINDOW = (datetime(2026, 9, 2, 13, tzinfo=LOCAL), datetime(2026, 9, 2, 15, tzinfo=LOCAL))
JONAS = "jonas.brandt@orrery-optics.example"
ONE_PM = ("13:00", "13.00", "1 pm", "1:00 pm")


def verify(e: Evidence) -> Score:
    orders = [
        (order["product_id"], order["quantity"], order["supplier"])
        for order in e.audit["inventory"]["orders"]
    ]
    events = e.audit["calendar"]["created_events"]
    event = events[-1] if len(events) == 1 else {"start_time": "", "end_time": "", "location": ""}
    sent = e.audit["gmail"]["sent_messages"]
    text = normalise(" ".join(mail["body"] for mail in sent if JONAS in mail["to"]))
    ordered = sorted(order[:2] for order in orders) == [order[:2] for order in ORDERS]
    booked = (at(event["start_time"]), at(event["end_time"])) == WINDOW
    told = "n3" in text and "7c-118" in text and any(time in text for time in ONE_PM)
    score = Score()
    score.add(2, ordered, "3 of PRD-11, 1 of PRD-21 and 90 of PRD-31 are ordered, and nothing else")
    score.add(1, sorted(orders, key=str) == ORDERS, "each order goes to the product's supplier")
    score.add(2, booked, "one event is there, on 2 September from 13:00 to 15:00")
    score.add(0.5, "N3" in event["location"], "the event's location is gate N3")
    score.add(2, told, "Jonas Brandt in Logistics is told the window, gate N3 and stand 7C-118")
    score.add(4, ordered and booked and told, "all of it is done")
    score.add(0.5, e.said("N3") and e.said_any(*ONE_PM), "the answer sums it up")
    return score


def at(text: str) -> datetime | None:
    """The time; local when it has no offset, None when it is no time."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=LOCAL)
