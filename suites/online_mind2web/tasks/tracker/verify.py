"""Verifiers of the tasks on the issue tracker."""

from collections.abc import Iterator
from typing import Any

from rollout.answers import numbers
from rollout.types import JsonObject

Checks = Iterator[tuple[str, Any]]

FACETS = ("status", "priority", "label", "assignee")
FIRST = {
    101: ("todo", "high", "crash", "Jonas Falk"),
    102: ("todo", "medium", "sync", ""),
    103: ("doing", "critical", "crash", "Mei Lin"),
    104: ("done", "high", "crash", "Tom Okafor"),
    105: ("todo", "low", "interface", ""),
    106: ("review", "medium", "docs", "Priya Nair"),
    107: ("todo", "critical", "sync", ""),
    108: ("todo", "medium", "crash", ""),
    109: ("done", "critical", "sync", "Mei Lin"),
    110: ("review", "high", "interface", "Tom Okafor"),
    111: ("doing", "low", "docs", "Jonas Falk"),
    112: ("todo", "high", "interface", ""),
    113: ("todo", "critical", "crash", "Priya Nair"),
    114: ("done", "low", "docs", "Priya Nair"),
    115: ("todo", "medium", "sync", "Tom Okafor"),
    116: ("todo", "critical", "interface", ""),
    117: ("todo", "low", "docs", ""),
    118: ("doing", "medium", "interface", "Mei Lin"),
    119: ("done", "medium", "sync", "Jonas Falk"),
    120: ("todo", "high", "sync", "Mei Lin"),
    121: ("todo", "low", "interface", ""),
    122: ("todo", "critical", "docs", ""),
    123: ("done", "high", "interface", "Tom Okafor"),
}
"""The issues at the start: number -> status, priority, label, assignee."""
COMMENTS = [1, 2, 3]


def _changes(state: JsonObject) -> dict[int, JsonObject | None]:
    """What became of the issues: number -> the fields that changed; None for deleted ones."""
    issues = {each["number"]: each for each in state["tracker"]["issues"]}
    changes: dict[int, JsonObject | None] = {}
    for number, first in FIRST.items():
        issue = issues.get(number)
        if issue is None:
            changes[number] = None
            continue
        pairs = zip(FACETS, first, strict=True)
        changed = {key: issue[key] for key, value in pairs if issue[key] != value}
        if issue["tags"]:
            changed["tags"] = issue["tags"]
        if changed:
            changes[number] = changed
    return changes


def _comments(state: JsonObject) -> list[int]:
    return [each["id"] for each in state["tracker"]["comments"]]


def verify_tracker_open_crashes(state: JsonObject, answer: str) -> Checks:
    yield "the count", 4 in numbers(answer) and not {3, 5} & set(numbers(answer))
    yield "changed nothing", not _changes(state) and _comments(state) == COMMENTS


def verify_tracker_close_android(state: JsonObject, answer: str) -> Checks:
    wanted = {103: {"status": "done", "assignee": "Tom Okafor"}}
    yield "the issue is done and Tom's, and no other changed", _changes(state) == wanted
    yield "no comment changed", _comments(state) == COMMENTS


def verify_tracker_drag_fonts(state: JsonObject, answer: str) -> Checks:
    yield (
        "the issue is in progress, and no other moved",
        _changes(state) == {112: {"status": "doing"}},
    )
    yield "no comment changed", _comments(state) == COMMENTS


def verify_tracker_attachment_limit(state: JsonObject, answer: str) -> Checks:
    new = [each for each in state["tracker"]["comments"] if each["id"] not in COMMENTS]
    yield "one comment on the issue", [each["issue"] for each in new] == [117]
    yield "it names the limit", len(new) == 1 and 36 in numbers(new[0]["text"].replace("MB", " MB"))
    yield "and not the old one", len(new) == 1 and 25 not in numbers(new[0]["text"])
    yield "no issue changed", not _changes(state)


def verify_tracker_spam(state: JsonObject, answer: str) -> Checks:
    yield "the issue is deleted, and no other", _changes(state) == {121: None}
    yield "the comment is deleted, and no other", _comments(state) == [1, 2]


def verify_tracker_triage(state: JsonObject, answer: str) -> Checks:
    wanted = {number: {"assignee": "Mei Lin"} for number in (107, 116, 122)}
    yield "the three issues are Mei Lin's, and no other changed", _changes(state) == wanted
    yield "no comment changed", _comments(state) == COMMENTS


def verify_tracker_tag_zh(state: JsonObject, answer: str) -> Checks:
    yield "the issue has the tag, and no other", _changes(state) == {120: {"tags": ["needs-info"]}}
    yield "no comment changed", _comments(state) == COMMENTS


def verify_tracker_move_slips(state: JsonObject, answer: str) -> Checks:
    yield (
        "the issue is in review, and no other moved",
        _changes(state) == {116: {"status": "review"}},
    )
    yield "no comment changed", _comments(state) == COMMENTS
