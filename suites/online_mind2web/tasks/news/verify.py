"""Verifiers of the tasks on the newspaper."""

from collections.abc import Iterator
from typing import Any

from rollout.answers import numbers, said
from rollout.types import JsonObject

Checks = Iterator[tuple[str, Any]]


def _necessary(state: JsonObject) -> bool:
    return bool(state["news"]["consent"] == "necessary")


def _rest(state: JsonObject, *changed: str) -> bool:
    """Whether nothing but the named lists was filled."""
    return all(not state["news"][key] for key in ("saved", "subscriptions") if key not in changed)


def verify_news_lunar_ice(state: JsonObject, answer: str) -> Checks:
    yield "only the necessary cookies", _necessary(state)
    yield "the share of ice", 5.6 in numbers(answer) and 80 not in numbers(answer)
    yield "changed nothing else", _rest(state)


def verify_news_film_reviewer(state: JsonObject, answer: str) -> Checks:
    yield "only the necessary cookies", _necessary(state)
    yield "the reviewer", said(answer, "Lucia Ferri") and not said(answer, "Owen Price")
    yield "changed nothing else", _rest(state)


def verify_news_beavers(state: JsonObject, answer: str) -> Checks:
    yield "only the necessary cookies", _necessary(state)
    yield "the article is saved, and no other", state["news"]["saved"] == ["a21"]
    yield "changed nothing else", _rest(state, "saved")


def verify_news_business_count(state: JsonObject, answer: str) -> Checks:
    yield "only the necessary cookies", _necessary(state)
    # A good answer may repeat the days and the year.
    found = [number for number in numbers(answer) if number not in (1, 10, 2026)]
    yield "the count", found == [3] or (not found and said(answer, "three"))
    yield "changed nothing else", _rest(state)


def verify_news_science_weekly(state: JsonObject, answer: str) -> Checks:
    yield "only the necessary cookies", _necessary(state)
    wanted = [{"email": "dana@ruiz.example", "letters": ["science"]}]
    yield "the one newsletter", state["news"]["subscriptions"] == wanted
    yield "changed nothing else", _rest(state, "subscriptions")


def verify_news_chengdu_zh(state: JsonObject, answer: str) -> Checks:
    yield "only the necessary cookies", _necessary(state)
    yield "the article is saved, and no other", state["news"]["saved"] == ["a18"]
    yield "tells the year", 2030 in numbers(answer)
    yield "changed nothing else", _rest(state, "saved")


def verify_news_list_stalls(state: JsonObject, answer: str) -> Checks:
    yield "only the necessary cookies", _necessary(state)
    yield "the article is saved, and no other", state["news"]["saved"] == ["a17"]
    yield "changed nothing else", _rest(state, "saved")
