"""Each manager in charge gets one mail with exactly their expiring customers; customers get none."""

from environments.claw.evidence import Evidence, Score

EXPIRING = {
    "zhaoyiming@dongcen.example": {"青禾农业": "2026-03-12", "石桥出版": "2026-03-31"},
    "linke@dongcen.example": {"远航物流": "2026-03-28"},
    "gaoyuan@dongcen.example": {"蓝湾水务": "2026-03-01"},
}
LEFT = "shenjia@dongcen.example"
NOT_EXPIRING = ("海棠酒店", "明澈光学", "南屿食品", "极木家具", "星野户外", "知行教育")


def verify(e: Evidence) -> Score:
    sent = e.audit["gmail"]["sent_messages"]
    score = Score()
    for who, customers in EXPIRING.items():
        bodies = [m["body"] for m in sent if who in m["to"]]
        text = bodies[0] if len(bodies) == 1 else ""
        listed = all(name in text and day in text for name, day in customers.items())
        strict = not any(name in text for name in NOT_EXPIRING)
        score.add(
            0.25, listed and strict, f"one mail to {who} lists just their customers, with dates"
        )
    score.add(
        0.15,
        bool(sent) and not any(LEFT in m["to"] for m in sent),
        "nothing goes to the manager who left",
    )
    names = [name for customers in EXPIRING.values() for name in customers]
    score.add(0.1, e.said(*names), "the answer names the four customers")
    outside = [m["to"] for m in sent if "@dongcen.example" not in m["to"]]
    score.forbid(bool(outside), f"mail went to customers: {outside}")
    return score
