"""The draft adds up the corrected register: Holm 102, Skarv 80, Ostra 45, Viken 90, total 317 MWh."""

import re

from environments.claw.evidence import Evidence, Score, normalise

PETRA = "petra.lindqvist@aurelis-research.example"
REGISTER = "https://register.varland-energy.example/storage"
COUNTED = (
    ("holm", "102", "2025-03-04"),
    ("skarv", "80", "2025-05-19"),
    ("ostra", "45", "2025-08-30"),
    ("viken", "90", "2025-11-11"),
)


def verify(e: Evidence) -> Score:
    drafts = e.audit["gmail"]["drafts"]
    mine = [draft for draft in drafts if PETRA in draft["to"]]
    text = mine[-1]["body"] if mine == drafts and drafts else ""
    lines = [normalise(line) for line in text.splitlines()]
    read = {
        call["request_body"]["url"]
        for call in e.audit["web"]["calls"]
        if "fetch" in call["endpoint"]
    }
    score = Score()
    score.add(
        4,
        number("317", normalise(text)),
        "a draft to Petra, and to nobody else, gives the total, 317 MWh",
    )
    score.add(
        2,
        sum(
            any(name in line and number(mwh, line) and day in line for line in lines)
            for name, mwh, day in COUNTED
        )
        / len(COUNTED),
        "the draft lists Holm 102, Skarv 80, Ostra 45 and Viken 90 with their dates",
    )
    score.add(
        1,
        {f"{REGISTER}?page=1", f"{REGISTER}?page=2", f"{REGISTER}/corrections"} <= read,
        "both pages of the register and its corrections were read",
    )
    score.add(1, REGISTER in text, "the draft gives the addresses of the register pages")
    score.add(0.5, e.said("317"), "the answer names the total")
    score.forbid(e.audit["gmail"]["sent_messages"], "a mail was sent")
    return score


def number(digits: str, text: str) -> bool:
    """Whether the text has this whole number."""
    return re.search(rf"(?<![\d.]){digits}(?!\d|\.[1-9])", text) is not None
