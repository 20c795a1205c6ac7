"""The employees' article says what was decided on 9 April, and nothing else has changed."""

from environments.claw.evidence import Evidence, Score, normalise

KEPT = (
    "For employees with a company laptop. Contractors follow KB-113.",
    "Sign in with your user name and the six digits of your hardware token.",
    "A session ends after 10 hours, or after 30 minutes without traffic.",
    "No token? See KB-140.",
    "Never read the digits of your token out to anyone, not even to the service desk.",
    "Service desk: extension 4400, Monday to Friday 07:00 to 19:00.",
)


def verify(e: Evidence) -> Score:
    updated = {update["article_id"] for update in e.audit["kb"]["updates"]}
    text = content(e, "KB-112")
    score = Score()
    score.add(
        3,
        "access.halden-instruments.example" in text
        and "5.2" in text
        and not any(old in text for old in ("vpn.halden", "vpn2.halden", "4.8")),
        "KB-112 names the gateway and the client version that were decided, and not the old ones",
    )
    score.add(
        3, all(normalise(line) in text for line in KEPT), "the other lines of KB-112 are kept"
    )
    score.add(
        0.5,
        e.said("KB-112", "access.halden-instruments.example", "5.2"),
        "the answer names the article, the gateway and the version",
    )
    score.forbid(updated - {"KB-112"}, "another article was changed")
    return score


def content(e: Evidence, article_id: str) -> str:
    """What was stored last for an article; empty when nothing was."""
    for call in reversed(e.audit["kb"]["calls"]):
        body = call["request_body"]
        if call["endpoint"] == "/kb/articles/update" and body["article_id"] == article_id:
            return normalise(body["content"])
    return ""
