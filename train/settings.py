"""What the results in a folder were made with: noted once, and compared before more are added."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rollout.errors import UsageError, usable
from rollout.types import JsonObject

__all__ = ["changes", "note", "noted"]


def noted(path: Path) -> JsonObject | None:
    """The settings in a file; None where there is none. Raises UsageError for one that is damaged."""
    with usable(path):
        if not path.exists():
            return None
        data = path.read_bytes()
    try:
        return msgspec.json.decode(data, type=JsonObject)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is damaged ({error}): restore it, or choose another folder"
        ) from (error)


def note(path: Path, settings: JsonObject) -> None:
    """Write settings down: the file is whole or as it was. Raises UsageError when the disk refuses."""
    with usable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".tmp")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(settings), indent=2))
        draft.replace(path)


def changes(old: JsonObject, new: JsonObject) -> list[str]:
    """Names of the settings that are no longer what they were."""
    told: JsonObject = msgspec.json.decode(msgspec.json.encode(new))
    return [name for name in told if old.get(name) != told[name]]
