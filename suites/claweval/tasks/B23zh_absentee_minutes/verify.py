"""The minutes of the release review reach those who were absent, and the calendar has its date."""

from environments.claw.evidence import Evidence, Score, normalise

ABSENT = {"zhou.ruoning@chengguang.example", "han.yizhou@chengguang.example"}
KEPT = (
    "云杉 3.1：2026-03-12（已发布）",
    "白桦 1.8：2026-06-11",
    "红枫 2.0：2026-06-25",
    "云杉 4.0：2026-11-05",
    "日期以发布评审会结论为准。日历由发布经理维护，如有疑问请联系分机 6021。",
)


def verify(e: Evidence) -> Score:
    shared = {
        (record["note_id"], recipient)
        for record in e.audit["notes"]["shared"]
        for recipient in record["recipients"]
    }
    updated = {update["article_id"] for update in e.audit["kb"]["updates"]}
    text = content(e, "KB-301")
    score = Score()
    score.add(
        3,
        shared == {("NOTE-505", address) for address in ABSENT},
        "NOTE-505 is shared with the two who were absent, and nothing else with anybody",
    )
    score.add(
        3,
        normalise("云杉 3.2：2026-06-18") in text and "2026-06-04" not in text,
        "the calendar gives 2026-06-18 for 云杉 3.2",
    )
    score.add(
        2,
        updated == {"KB-301"} and all(normalise(line) in text for line in KEPT),
        "the other lines of the calendar are kept, and no other article was changed",
    )
    score.add(
        0.5,
        e.said_any("2026-06-18", "6 月 18 日") and (e.said("周若宁", "韩亦舟") or e.said(*ABSENT)),
        "the answer names the date and the two people",
    )
    return score


def content(e: Evidence, article_id: str) -> str:
    """What was stored last for an article; empty when nothing was."""
    for call in reversed(e.audit["kb"]["calls"]):
        body = call["request_body"]
        if call["endpoint"] == "/kb/articles/update" and body["article_id"] == article_id:
            return normalise(body["content"])
    return ""
