"""WebVoyager's own data (github.com/MinorJerry/WebVoyager, data/): questions, and reference answers.

A patch is a file of the same form: the questions that remain, perhaps in newer words. Ids never change,
words do; so a result names the digests of both files.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

import msgspec

from environments.browser_use.task import BrowserTask
from environments.browser_use.tools import TOOLS
from rollout.errors import UsageError
from rollout.types import JsonObject
from suites.command.records import Records, find, ids_hash, read
from suites.webvoyager.dates import past

__all__ = ["Questions", "load"]

KNOWN = {
    "69b19fd86c23f1a5": "the original 643",
    "5c8cb175fdac7a5e": "Fara's 595 of 2025-08-31",
    "21f9cc4bed7286a2": "MolmoWeb's 595 of spring 2026",
}
"""Versions by the beginning of the file's SHA-256."""

DATED_SITES = ("Booking", "Google Flights", "ESPN")
"""Where a date that is past makes a question impossible; elsewhere it is history."""

ANSWERS = "reference_answer.json"
ASKED = {
    "golden": "The answer agrees with: {}",
    "possible": "The answer is as good as this possible one: {}",
}
TIMEOUT = 1800.0


class Line(msgspec.Struct, frozen=True):
    """A question as the file has it."""

    web_name: str
    id: str
    ques: str
    web: str


class Answer(msgspec.Struct, frozen=True):
    """One of a site's reference answers."""

    id: int
    type: Literal["golden", "possible"]
    ans: str


class Site(msgspec.Struct, frozen=True):
    """A site's reference answers."""

    answers: list[Answer]


@dataclass(frozen=True)
class Questions:
    """A copy of the benchmark, patched where the user asks for that."""

    base: Records
    patch: Records | None
    lines: list[Line]
    removed: int
    reworded: int
    answers: dict[str, Answer]
    """By the question's id."""

    def tasks(
        self, max_steps: int, start: str = "site", today: date | None = None
    ) -> list[BrowserTask]:
        """As attempts need them."""
        day = today or date.today()
        return [self._task(line, max_steps, start, day) for line in self.lines]

    def notes(self, today: date | None = None) -> list[str]:
        """What a reader must know: the versions, and the questions that can't be done any more."""
        notes = [f"questions of {_named(self.base)}, ids {self._ids()[:12]}"]
        if self.patch is not None:
            notes.append(
                f"patched by {_named(self.patch)}: {len(self.lines)} remain, "
                f"{self.removed} removed, {self.reworded} reworded"
            )
        tasks = self.tasks(1, today=today)
        if dated := sum("dated" in task.tags for task in tasks):
            notes.append(
                f"{dated} questions ask for a date that is past (tag:dated): give newer words "
                "with --patch"
            )
        return notes

    def source(self) -> JsonObject:
        """For the manifest."""
        patched = {"patch_sha256": self.patch.sha256} if self.patch else {}
        return {"sha256": self.base.sha256, "ids": self._ids(), **patched}

    def _ids(self) -> str:
        return ids_hash([line.id for line in self.lines])

    def _task(self, line: Line, max_steps: int, start: str, today: date) -> BrowserTask:
        blank, answer = start == "blank", self.answers.get(line.id)
        dated = line.web_name in DATED_SITES and past(line.ques, today)
        tags = [answer.type] if answer else []
        return BrowserTask(
            id=line.id,
            prompt=f"On {line.web}: {line.ques}" if blank else line.ques,
            tools=TOOLS,
            category=line.web_name,
            tags=(*tags, "dated") if dated else tuple(tags),
            start="about:blank" if blank else line.web,
            timeout=TIMEOUT,
            max_turns=max_steps,
            judged=True,
            rubric=(ASKED[answer.type].format(answer.ans),) if answer else (),
            fingerprint=hashlib.sha256(msgspec.json.encode((line, answer))).hexdigest(),
        )


def load(data: Path, patch: Path | None = None) -> Questions:
    """Read a file, or the one in a folder or checkout, and patch it. Raises UsageError."""
    path = find(data, "WebVoyager_data*.jsonl", "data/WebVoyager_data*.jsonl")
    base = read(path)
    lines = base.typed(Line, "id")
    answers = _answers(path.parent / ANSWERS)
    if patch is None:
        return Questions(base, None, lines, 0, 0, answers)
    newer = read(patch)
    known = {line.id: line for line in lines}
    kept = newer.typed(Line, "id")
    for (number, _), line in zip(newer.lines, kept, strict=True):
        if line.id not in known:
            raise UsageError(f"--patch {patch}, line {number}: {path} has no question {line.id!r}")
    reworded = sum(line.ques != known[line.id].ques for line in kept)
    return Questions(base, newer, kept, len(lines) - len(kept), reworded, answers)


def _answers(path: Path) -> dict[str, Answer]:
    """The reference answers beside the questions; none where the file is missing."""
    if not path.is_file():
        return {}
    try:
        sites = msgspec.json.decode(path.read_bytes(), type=dict[str, Site])
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: {error}; restore the benchmark's own file") from error
    return {
        f"{name}--{answer.id}": answer for name, site in sites.items() for answer in site.answers
    }


def _named(records: Records) -> str:
    version = KNOWN.get(records.sha256[:16], "an unknown version")
    return f"{records.path} (sha256 {records.sha256[:12]}, {version})"
