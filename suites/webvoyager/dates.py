"""Dates in questions: a flight on a day that is past can't be booked."""

from __future__ import annotations

import re
from calendar import month_abbr, monthrange
from collections.abc import Iterator
from datetime import date

__all__ = ["past"]

MONTHS = {name.lower(): number for number, name in enumerate(month_abbr) if name}
NAME = rf"(?P<month>{'|'.join(MONTHS)})[a-z]*\.?"
FORMS = (
    re.compile(r"\b(?P<year>20\d\d)-(?P<number>\d\d)-(?P<day>\d\d)\b"),
    re.compile(rf"\b{NAME}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>20\d\d)\b", re.I),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+{NAME},?\s+(?P<year>20\d\d)\b", re.I),
    re.compile(rf"\b{NAME},?\s+(?P<year>20\d\d)\b", re.I),
)


def past(text: str, today: date) -> str:
    """The first date in a text that lies before `today`, as it is written; empty where there is none.

    Days and months without a year are nobody's past.
    """
    return next((match[0] for match in _found(text) if (_last_day(match) or today) < today), "")


def _found(text: str) -> Iterator[re.Match[str]]:
    for form in FORMS:
        yield from form.finditer(text)


def _last_day(match: re.Match[str]) -> date | None:
    """The last day that is meant; None for what is no date."""
    parts = match.groupdict()
    year = int(parts["year"])
    month = int(parts["number"]) if "number" in parts else MONTHS[parts["month"].lower()]
    if not 1 <= month <= 12:
        return None
    length = monthrange(year, month)[1]
    day = int(parts["day"]) if "day" in parts else length
    return date(year, month, day) if 1 <= day <= length else None
