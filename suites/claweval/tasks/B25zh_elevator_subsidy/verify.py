"""The rules of 2026 with the rise for two lifts, and the deadline as it was extended."""

from environments.claw.evidence import Evidence, Score, normalise


def verify(e: Evidence) -> Score:
    created = [
        call["request_body"]
        for call in e.audit["todo"]["calls"]
        if call["endpoint"] == "/todo/tasks/create"
        and "电梯更新补贴申报" in normalise(call["request_body"]["title"])
    ]
    task = created[-1] if len(created) == 1 else {}
    score = Score()
    score.add(3, task.get("due_date") == "2026-05-20", "one task is due on 2026-05-20")
    score.add(
        3,
        "29.4" in normalise(task.get("description") or ""),
        "the task's description names the total, 29.4 万元",
    )
    score.add(2, e.said("29.4"), "the answer names the total, 29.4 万元")
    score.add(1, e.said_any("2026-05-20", "5 月 20 日"), "the answer names the deadline")
    score.add(
        0.5, e.said("zjj.linlan.example"), "the answer gives the addresses of the city's own pages"
    )
    return score
