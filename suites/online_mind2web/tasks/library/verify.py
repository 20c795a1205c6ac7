"""Verifiers of the tasks on the document library."""

from collections.abc import Iterator
from typing import Any

from rollout.answers import numbers, said, said_any
from rollout.types import JsonObject

Checks = Iterator[tuple[str, Any]]

FIRST = {
    **dict.fromkeys(("D01", "D02", "D03", "D04"), "minutes"),
    **dict.fromkeys(("D05", "D06", "D08"), "policies"),
    **dict.fromkeys(("D09", "D10", "D11"), "contracts"),
    **dict.fromkeys(("D07", "D12", "D13", "D14", "D15"), "drafts"),
}
"""The folder of each document at the start."""


def _moved(state: JsonObject) -> dict[str, str]:
    """Document -> the folder that it was moved to."""
    folders = state["library"]["folder"]
    return {key: folder for key, folder in folders.items() if folder != FIRST[key]}


def _rest(state: JsonObject, *changed: str) -> bool:
    """Whether all but the named parts of the state are as they were."""
    first: JsonObject = {"folder": FIRST, "folders": {}, "starred": []}
    return all(state["library"][key] == value for key, value in first.items() if key not in changed)


def _downloaded(state: JsonObject, name: str) -> bool:
    return {each["name"] for each in state["downloads"]} == {name}


def verify_library_february_minutes(state: JsonObject, answer: str) -> Checks:
    yield "the minutes are downloaded", _downloaded(state, "board-minutes-2026-02.txt")
    yield "changed nothing", _rest(state)


def verify_library_meal_limit(state: JsonObject, answer: str) -> Checks:
    yield "the limit in force", 52 in numbers(answer)
    yield "no other limit", not {45, 60} & set(numbers(answer))
    yield "changed nothing", _rest(state)


def verify_library_q2_folder(state: JsonObject, answer: str) -> Checks:
    folders = state["library"]["folders"]
    yield "one folder of that name", list(folders.values()) == ["Q2 2026"]
    yield (
        "both documents in it",
        _moved(state) == dict.fromkeys(("D11", "D12"), next(iter(folders), "")),
    )
    yield "changed nothing else", _rest(state, "folder", "folders")


def verify_library_old_drafts(state: JsonObject, answer: str) -> Checks:
    yield (
        "both old drafts are in the archive",
        _moved(state) == {"D13": "archive", "D14": "archive"},
    )
    yield "changed nothing else", _rest(state, "folder")


def verify_library_star_zh(state: JsonObject, answer: str) -> Checks:
    yield "the minutes are starred", state["library"]["starred"] == ["D02"]
    date = said_any(answer, "2月12日", "2026-02-12", "12 February", "February 12")
    yield "tells the next meeting", date and not said(answer, "1月15日")
    yield "changed nothing else", _rest(state, "starred")


def verify_library_button_missing(state: JsonObject, answer: str) -> Checks:
    yield "the lease is downloaded", _downloaded(state, "copier-lease.txt")
    yield (
        "tells the notice",
        said_any(answer, "six weeks", "6 weeks", "six-week", "6-week", "六周", "6周"),
    )
    yield "changed nothing", _rest(state)
