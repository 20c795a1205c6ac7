"""The built-in tasks: the benchmark's own schema, on sites of ours.

A folder `tasks/SITE/` holds `tasks.json` (the benchmark's fields, and `language`, `sites`, `faults`,
`files` where a task has them), `solutions.yaml` (task id -> a reference solution and wrong ones) and
`verify.py`. A step of a solution is a call and its arguments; `at: TARGET` stands for the x and y of a
target at that moment (`World.locate`), `from:` and `to:` for the two ends of a drag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from environments.browser_use.sites import SITES, sources
from environments.browser_use.task import BrowserTask
from environments.browser_use.tools import TOOLS
from rollout.errors import UsageError
from rollout.types import JsonObject, Solution, Step

__all__ = ["builtin_tasks"]

FOLDER = Path(__file__).parent / "tasks"
RECOVERY = "recovery"
"""Tag of the tasks whose sites misbehave."""
TIMEOUT = 600.0
SPARE = 2
"""An agent may take so many times the reference's steps."""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task of tasks.json."""

    task_id: str
    confirmed_task: str
    website: str
    """The page that it starts on: `SITE:/path`."""
    reference_length: int
    """Actions of the reference solution, its answer included."""
    level: Literal["easy", "medium", "hard"]
    language: Literal["en", "zh"] = "en"
    sites: tuple[str, ...] = ()
    """Those that it needs beside the one that it starts on."""
    faults: JsonObject = {}
    files: tuple[str, ...] = ()
    """Names in `files/` that the agent finds in its workspace."""


class StepEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    """One step of solutions.yaml."""

    call: str
    at: str = ""
    from_: str = ""
    to: str = ""
    arguments: JsonObject = {}
    retry: int = 0
    expect: JsonObject = {}
    back: int = 0

    def record(self) -> Step:
        places = _place("", self.at) | _place("from_", self.from_) | _place("to_", self.to)
        return Step(
            call=self.call,
            arguments=places | self.arguments,
            retry=self.retry,
            expect=self.expect,
            back=self.back,
        )


class SolutionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scripted way through a task."""

    steps: tuple[StepEntry, ...] = ()
    answer: str = ""
    name: str = "reference"

    def record(self) -> Solution:
        steps = tuple(step.record() for step in self.steps)
        return Solution(name=self.name, steps=steps, answer=self.answer)


class Solutions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What solutions.yaml says of one task."""

    reference: SolutionEntry
    wrong: tuple[SolutionEntry, ...]


def builtin_tasks() -> list[BrowserTask]:
    """All built-in tasks, site by site. Raises UsageError that names what is wrong in a file."""
    return [task for folder in sorted(FOLDER.glob("*/")) for task in _load(folder)]


def _load(folder: Path) -> Iterable[BrowserTask]:
    entries = _read(folder / "tasks.json", tuple[Entry, ...])
    solutions = _read(folder / "solutions.yaml", dict[str, Solutions])
    ids = {entry.task_id for entry in entries}
    if ids != set(solutions):
        odd = ", ".join(sorted(ids ^ set(solutions)))
        raise UsageError(f"{folder}: in one of tasks.json and solutions.yaml only: {odd}")
    for entry in entries:
        yield _task(folder, entry, solutions[entry.task_id])


def _task(folder: Path, entry: Entry, solutions: Solutions) -> BrowserTask:
    site = entry.website.partition(":")[0]
    sites = tuple(dict.fromkeys((site, *entry.sites)))
    if unknown := [name for name in sites if name not in SITES]:
        raise UsageError(f"{folder / 'tasks.json'}: {entry.task_id}: no site {unknown[0]!r}")
    files = {name: str(folder / "files" / name) for name in entry.files}
    return BrowserTask(
        id=entry.task_id,
        prompt=entry.confirmed_task,
        tools=TOOLS,
        files=files,
        category=site,
        language=entry.language,
        difficulty=entry.level,
        tags=(RECOVERY,) if entry.faults else (),
        timeout=TIMEOUT,
        max_turns=max(12, SPARE * entry.reference_length),
        reference=solutions.reference.record(),
        wrong=tuple(each.record() for each in solutions.wrong),
        start=entry.website,
        sites=sites,
        faults=entry.faults,
        verifier=str(folder / "verify.py"),
        reference_length=entry.reference_length,
        fingerprint=_fingerprint(folder, entry, sites, files.values()),
    )


def _read(path: Path, kind: Any) -> Any:
    try:
        return msgspec.convert(yaml.safe_load(path.read_text("utf-8")), kind)
    except (OSError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise UsageError(f"{path}: {error}; correct the file") from error


def _place(prefix: str, target: str) -> JsonObject:
    if not target:
        return {}
    return {f"{prefix}{axis}": f"{{{{at:{target}|{axis}}}}}" for axis in "xy"}


def _fingerprint(folder: Path, entry: Entry, sites: tuple[str, ...], files: Iterable[str]) -> str:
    """Of the task, its verifier, its files, and its sites' code and data."""
    digest = hashlib.sha256(msgspec.json.encode(entry))
    digest.update(_sites_digest(sites))
    for path in (folder / "verify.py", *map(Path, files)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _sites_digest(sites: tuple[str, ...]) -> bytes:
    digest = hashlib.sha256()
    for path in sources(sites):
        digest.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()
