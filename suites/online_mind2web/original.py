"""The benchmark's own file (huggingface.co/datasets/osunlp/Online-Mind2Web), as JSON or JSON lines.

There is no version in it. Tasks that no longer work are replaced from time to time; the new ones have the
old id with a date behind it (`..._110325`). So ids are opaque, and a version is told by two digests: the
file's, and that of its set of ids.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from environments.browser_use.task import BrowserTask
from environments.browser_use.tools import TOOLS
from suites.command.records import Records, find, ids_hash, read

__all__ = ["Tasks", "load"]

KNOWN = {
    "e4bb090a72d8d57d": "2025-06-04, as in Fara",
    "50d330ee9f347c5a": "2026-01-02, as in MolmoWeb",
}
"""Versions by the beginning of the file's SHA-256."""

REPLACED = re.compile(r"_(\d\d)(\d\d)(\d\d)$")
SIZE = 300
TIMEOUT = 1800.0


class Line(msgspec.Struct, frozen=True):
    """A task as the file has it."""

    task_id: str
    confirmed_task: str
    website: str
    reference_length: int
    level: Literal["easy", "medium", "hard"]


@dataclass(frozen=True)
class Tasks:
    """A copy of the benchmark."""

    records: Records
    lines: list[Line]

    @property
    def ids(self) -> str:
        return ids_hash([line.task_id for line in self.lines])

    @property
    def version(self) -> str:
        """Its name where it is a known one, else what can be told from its ids."""
        if known := KNOWN.get(self.records.sha256[:16]):
            return known
        dates = [match for line in self.lines if (match := REPLACED.search(line.task_id))]
        if not dates:
            return "unknown, no task replaced"
        latest = max(f"20{match[3]}-{match[1]}-{match[2]}" for match in dates)
        return f"unknown, {len(dates)} tasks replaced until {latest}"

    @property
    def note(self) -> str:
        told = (
            f"tasks of {self.records.path} (sha256 {self.records.sha256[:12]}, "
            f"ids {self.ids[:12]}; version {self.version})"
        )
        count = len(self.lines)
        return told if count == SIZE else f"{told}; {count} of the benchmark's {SIZE}"

    def tasks(self, max_steps: int) -> list[BrowserTask]:
        """As attempts need them."""
        return [_task(line, max_steps) for line in self.lines]


def load(data: Path) -> Tasks:
    """Read a file, or the one in a folder. Raises UsageError."""
    path = find(data, "*nline*ind2*eb*.json", "*nline*ind2*eb*.jsonl", "data/*ind2*eb*.json")
    records = read(path)
    return Tasks(records, records.typed(Line, "task_id"))


def _task(line: Line, max_steps: int) -> BrowserTask:
    return BrowserTask(
        id=line.task_id,
        prompt=line.confirmed_task,
        tools=TOOLS,
        category=line.level,
        difficulty=line.level,
        tags=(urlsplit(line.website).hostname or line.website,),
        start=line.website if "://" in line.website else f"https://{line.website}",
        timeout=TIMEOUT,
        max_turns=max_steps,
        judged=True,
        reference_length=line.reference_length,
        fingerprint=hashlib.sha256(msgspec.json.encode(line)).hexdigest(),
    )
