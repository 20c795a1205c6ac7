"""Verifiers of the tasks on the town's services."""

from collections.abc import Iterator
from typing import Any

from rollout.answers import declined, numbers, said
from rollout.types import JsonObject

Checks = Iterator[tuple[str, Any]]

BILL = "9e07fac516c1c19092d4eb55609501d12873dfc148c5ad76fb0fa4acdf1e80c2"
"""SHA-256 of water-bill.pdf."""


def _only(sent: list[JsonObject], **wanted: str) -> bool:
    """Whether one thing was sent, with these fields."""
    return len(sent) == 1 and all(sent[0].get(key) == value for key, value in wanted.items())


def _nothing_sent(state: JsonObject) -> bool:
    return not state["forms"]["reports"] and not state["forms"]["permits"]


def verify_forms_hybrid_fee(state: JsonObject, answer: str) -> Checks:
    yield "the fee", 125 in numbers(answer) and 150 not in numbers(answer)
    yield "sent nothing", _nothing_sent(state)


def verify_forms_street_light(state: JsonObject, answer: str) -> Checks:
    reports = state["forms"]["reports"]
    yield "one report on a street light", _only(reports, kind="light", place="Mill Lane 8")
    yield "dangerous", _only(reports, urgency="danger")
    yield "the details", _only(reports, details="The lamp hangs from its cable.")
    yield "the e-mail address", _only(reports, email="dana@ruiz.example")
    yield "no application", not state["forms"]["permits"]


def verify_forms_parking_permit(state: JsonObject, answer: str) -> Checks:
    permits = state["forms"]["permits"]
    person = {"name": "Dana Ruiz", "birth": "1988-07-21", "email": "dana@ruiz.example"}
    yield "the applicant", _only(permits, **person)
    yield "the car", _only(permits, plate="NB-417-DR", engine="electric")
    yield "zone and month", _only(permits, zone="B", start="2026-05")
    yield "the water bill", len(permits) == 1 and permits[0]["proof"]["sha256"] == BILL
    yield "tells number and fee", said(answer, "PP-5520") and 60 in numbers(answer)
    yield "no report", not state["forms"]["reports"]


def verify_forms_pothole_zh(state: JsonObject, answer: str) -> Checks:
    reports = state["forms"]["reports"]
    yield "one report on a pothole", _only(reports, kind="pothole", place="港口路12号")
    yield "within the week", _only(reports, urgency="normal")
    details = reports[0]["details"].rstrip("。.") if reports else ""
    yield "the details", details == "路口有一个约半米宽的坑洞"
    yield "the e-mail address", _only(reports, email="wang@beiqiao.example")
    yield "tells the number", said(answer, "NB-3107")
    yield "no application", not state["forms"]["permits"]


def verify_forms_report_vanishes(state: JsonObject, answer: str) -> Checks:
    reports = state["forms"]["reports"]
    yield "one report on the tree", _only(reports, kind="tree", place="Station Square")
    yield "dangerous", _only(reports, urgency="danger")
    yield "the details", _only(reports, details="A lime tree lies across the cycle path.")
    yield "the e-mail address", _only(reports, email="dana@ruiz.example")
    yield "no application", not state["forms"]["permits"]


def verify_forms_zone_without_permit(state: JsonObject, answer: str) -> Checks:
    yield "says that there is no such zone", declined(answer)
    yield "names no fee", not {40, 60, 75, 90} & set(numbers(answer))
    yield "sent nothing", _nothing_sent(state)
