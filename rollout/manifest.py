"""The manifest: everything about a run that can change its result, written before it starts.

Two runs can be compared when their manifests agree; a run can be resumed when its manifest agrees with
what is about to run. `manifest.json` is plain JSON for people and for diff.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from rollout.errors import UsageError, usable
from rollout.first_sent import FirstSent, first_sent
from rollout.store import sync_folder
from rollout.types import Call, JsonObject, Record

__all__ = ["Code", "Difference", "Manifest", "differences"]

MANIFEST = "manifest.json"
FORMAT = 1
PROJECT = Path(__file__).resolve().parent.parent

_SECRET_NAME = re.compile(
    r"(?:^|[_-])(?:api_?key|key|secret|password|token|authorization|credentials?)$", re.IGNORECASE
)
_SECRET_IN_URL = re.compile(
    r"([?&][\w-]*(?:key|token|secret|password|sig|signature)=)[^&#\s]+", re.I
)
_LOGIN_IN_URL = re.compile(r"(\w://)[^/\s@]+@")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Code(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What ran the run."""

    version: str
    """AnyHarness's own."""
    commit: str = ""
    """Git commit of the checkout; empty for an installed package."""
    dirty: bool = False
    """Whether tracked files differed from the commit."""
    python: str = ""
    platform: str = ""

    @classmethod
    def here(cls) -> Self:
        """The code that is running now."""
        commit = _git("rev-parse", "HEAD")
        return cls(
            version=_version(),
            commit=commit,
            dirty=bool(commit and _git("status", "--porcelain", "--untracked-files=no")),
            python=platform.python_version(),
            platform=platform.platform(),
        )


class Manifest(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What was run. Objects are the `fingerprint()` of the part that they name."""

    suite: JsonObject
    """Name, and where the data came from with its hash."""
    tasks: dict[str, str]
    """Task id -> SHA-256 of its data, graders included."""
    harness: JsonObject
    """Name, program, version, preset, options."""
    tools: str
    """The tool surface."""
    skills: str = ""
    """SHA-256 of the SKILL.md folders, on the `skill` surface."""
    model: JsonObject
    sampling: JsonObject = {}
    """Parameters forced on every model call."""
    context_window: int = 0
    """Tokens; 0 where the model server was not asked."""
    max_output: int = 0
    """Tokens of one reply at most."""
    environment: JsonObject = {}
    sandbox: JsonObject = {}
    """Kind, image, limits."""
    judge: JsonObject = {}
    retries: JsonObject = {}
    """The retry policy: of model calls and of attempts."""
    seed: int
    attempts: int
    """Per task; the k of pass^k."""
    timeout: float | None = None
    """Wall-clock limit of an attempt, seconds; None is each task's own."""
    code: Code = msgspec.field(default_factory=Code.here)
    created: str = msgspec.field(default_factory=_now)
    first_sent: dict[str, FirstSent] = {}
    """Task id -> what the harness first sent for it; known only once it ran."""
    notes: tuple[str, ...] = ()
    """What changed while it ran: other code on resume, other prompts than at first."""
    format: int = FORMAT

    @staticmethod
    def exists(folder: Path) -> bool:
        """Whether a run has one, be it damaged."""
        return (folder / MANIFEST).exists()

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The manifest of a run. Raises UsageError where there is none, or it can't be read."""
        path = folder / MANIFEST
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise UsageError(f"{folder} holds no run: {MANIFEST} is missing") from None
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; restore it") from error
        try:
            written = msgspec.json.decode(data, type=_Format).format
            if written != FORMAT:
                raise UsageError(
                    f"{path} has format {written}, this version of AnyHarness reads {FORMAT}: "
                    "use the version that wrote it"
                )
            return msgspec.json.decode(data, type=cls)
        except msgspec.DecodeError as error:
            raise UsageError(f"{path} is damaged: {error}") from error

    def write(self, folder: Path) -> None:
        """Write or replace the manifest in `folder`; a crash leaves the old one or the new one.

        Raises UsageError when the disk is full, or the folder gone.
        """
        data = msgspec.json.format(msgspec.json.encode(self.as_json()), indent=2)
        path, partial = folder / MANIFEST, folder / f".{MANIFEST}.partial"
        with usable(path):
            with partial.open("wb") as file:
                file.write(data + b"\n")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
            sync_folder(folder)

    def as_json(self) -> JsonObject:
        """Plain JSON, without keys, passwords and logins."""
        scrubbed: JsonObject = _scrub(msgspec.to_builtins(self))
        return scrubbed

    def amend(self, task_id: str, call: Call) -> Self:
        """With what the harness first sent for a task; itself when nothing is new.

        A prompt that changes during a run is noted and does not stop it: the run did happen like that.
        """
        sent, before = first_sent(call), self.first_sent.get(task_id)
        if before is None:
            return msgspec.structs.replace(self, first_sent={**self.first_sent, task_id: sent})
        changed = [
            what
            for what, old, new in (
                ("system prompt", before.system_sha256, sent.system_sha256),
                ("tool schemas", before.tools_sha256, sent.tools_sha256),
            )
            if old != new
        ]
        note = f"{task_id}: the {' and the '.join(changed)} differed between attempts"
        return self if not changed or note in self.notes else self._noted(note)

    def resumed_by(self, new: Manifest) -> Self:
        """This manifest, with a note when other code goes on with the run."""
        old = msgspec.to_builtins(self.code)
        changed = _compare(old, msgspec.to_builtins(new.code))
        what = "; ".join(map(str, changed))
        return self._noted(f"resumed at {new.created} by other code: {what}") if changed else self

    def _noted(self, note: str) -> Self:
        return msgspec.structs.replace(self, notes=(*self.notes, note))


class Difference(NamedTuple):
    """A field in which two manifests differ. Its string is one line."""

    field: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.field}: {self.old!r} -> {self.new!r}"


def differences(old: Manifest, new: Manifest) -> list[Difference]:
    """What differs and must not on resume: everything that can change a result.

    Left out: when it was created, notes, what was first sent (known only later), and the code but for
    its version. Fixing a bug and going on is what resume is for; `resumed_by` notes the other commit.
    Concurrency, output and progress are no part of a manifest.
    """
    return _compare(_bound(old), _bound(new))


class _Format(Record, frozen=True, kw_only=True):
    format: int


def _bound(manifest: Manifest) -> JsonObject:
    fields = manifest.as_json()
    for name in ("created", "notes", "first_sent"):
        del fields[name]
    return {**fields, "code": {"version": manifest.code.version}}


def _compare(old: JsonObject, new: JsonObject) -> list[Difference]:
    before, after = _flat(old), _flat(new)
    return [
        Difference(name, before.get(name), after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Leaves by dotted path."""
    if not isinstance(value, dict):
        return {name: value}
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat |= _flat(item, f"{name}.{key}" if name else str(key))
    return flat


def _scrub(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _scrub(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scrub(item, name) for item in value]
    if not isinstance(value, str):
        return value
    if _SECRET_NAME.search(name):
        return "<hidden>" if value else ""
    return _LOGIN_IN_URL.sub(r"\1", _SECRET_IN_URL.sub(r"\1<hidden>", value))


def _version() -> str:
    try:
        return metadata.version("anyharness")
    except metadata.PackageNotFoundError:
        return "not installed"


def _git(*arguments: str) -> str:
    """A git command's output in this project's own checkout; empty where there is none."""
    if not (PROJECT / ".git").exists():
        return ""
    command = ("git", "-C", str(PROJECT), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
