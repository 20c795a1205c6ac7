"""One briefing with the five articles that qualify, newest first, to the two recipients."""

import re

from environments.claw.evidence import Evidence, Score

WANTED = ["RSS-701", "RSS-708", "RSS-705", "RSS-707", "RSS-712"]
RECIPIENTS = {"desk@northgrid.example", "lab@northgrid.example"}


def verify(e: Evidence) -> Score:
    published = e.audit["rss"]["published"]
    issue = published[-1] if published else {"title": "", "content": "", "recipients": []}
    ids = re.findall(r"RSS-\d+", issue["content"])
    score = Score()
    score.add(
        4,
        len(published) == 1 and sorted(ids) == sorted(WANTED),
        "one briefing lists exactly RSS-701, 705, 707, 708 and 712",
    )
    score.add(1.5, ids == WANTED, "the newest article comes first")
    score.add(2, set(issue["recipients"]) == RECIPIENTS, "it goes to the two recipients")
    score.add(
        1,
        "Battery briefing 2026-09-18" in issue["title"],
        "its title is Battery briefing 2026-09-18",
    )
    score.add(0.5, e.said_any("5", "five"), "the answer says that there are five articles")
    return score
