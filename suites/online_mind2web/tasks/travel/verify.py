"""Verifiers of the tasks on the flight portal."""

from collections.abc import Iterator
from typing import Any

from rollout.answers import numbers, said, said_any
from rollout.types import JsonObject

Checks = Iterator[tuple[str, Any]]

BOOKED = {"SKY7Q2": "confirmed", "SKY4M8": "confirmed"}


def _old(state: JsonObject, **changed: str) -> bool:
    """Whether the bookings of the start are as they were, but for the named ones."""
    old = {each["ref"]: each["status"] for each in state["travel"]["bookings"][:2]}
    return old == BOOKED | changed


def _nothing_booked(state: JsonObject) -> bool:
    return len(state["travel"]["bookings"]) == 2 and _old(state)


def _booking(state: JsonObject) -> JsonObject:
    new = state["travel"]["bookings"][2:]
    return new[0] if len(new) == 1 else {}


def _legs(booking: JsonObject) -> list[tuple[str, str]]:
    return [(leg["flight"], leg["date"]) for leg in booking.get("legs", ())]


def verify_travel_second_bag(state: JsonObject, answer: str) -> Checks:
    yield "the fee", 40 in numbers(answer) and 25 not in numbers(answer)
    yield "changed nothing", _nothing_booked(state)


def verify_travel_cheapest_nonstop(state: JsonObject, answer: str) -> Checks:
    yield "the flight", said_any(answer, "AW 538", "AW538") and not said_any(answer, "820")
    yield "its price", 73 in numbers(answer)
    yield "changed nothing", _nothing_booked(state)


def verify_travel_book_return(state: JsonObject, answer: str) -> Checks:
    booking = _booking(state)
    legs = [("BN 188", "2026-04-10"), ("AW 538", "2026-04-14")]
    yield "the flights", _legs(booking) == legs
    yield "the passenger", booking.get("passengers") == ["Dana Ruiz"]
    yield "one bag", booking.get("bags") == 1
    yield "a window seat", booking.get("seat") == "window"
    yield "tells the total", 224 in numbers(answer)
    yield "changed nothing else", _old(state)


def verify_travel_cancel_paris(state: JsonObject, answer: str) -> Checks:
    yield "the booking to Paris is cancelled", _old(state, SKY7Q2="cancelled")
    yield "nothing is booked", len(state["travel"]["bookings"]) == 2
    yield "tells the refund", 99.4 in numbers(answer)


def verify_travel_nonstop_zh(state: JsonObject, answer: str) -> Checks:
    yield "the flight", said_any(answer, "CQ 222", "CQ222") and not said_any(answer, "850")
    yield "its price", 756 in numbers(answer)
    yield "changed nothing", _nothing_booked(state)


def verify_travel_last_sunday(state: JsonObject, answer: str) -> Checks:
    yield "the flight", said_any(answer, "BN 719", "BN719") and not said_any(answer, "441")
    yield "its departure", said(answer, "6:50") or said(answer, "06:50")
    yield "changed nothing", _nothing_booked(state)


def verify_travel_search_fails(state: JsonObject, answer: str) -> Checks:
    yield "the flight", said_any(answer, "AW 709", "AW709") and not said_any(answer, "295")
    yield "its price", 103 in numbers(answer)
    yield "changed nothing", _nothing_booked(state)


def verify_travel_book_two_zh(state: JsonObject, answer: str) -> Checks:
    booking = _booking(state)
    yield "the flight", _legs(booking) == [("AW 230", "2026-04-03")]
    yield "both passengers", booking.get("passengers") in (["李雷", "韩梅梅"], ["韩梅梅", "李雷"])
    yield "no bag", booking.get("bags") == 0
    yield "seats at the aisle", booking.get("seat") == "aisle"
    yield "tells the total", 1428 in numbers(answer)
    yield "changed nothing else", _old(state)
