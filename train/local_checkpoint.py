"""Checkpoints that are whole or not there, and the metrics beside them.

A checkpoint is a folder that `from_pretrained` reads, with the optimizer's state. It is written under
another name, brought to the disk, then renamed: whoever is killed meanwhile finds the one before.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import torch

from rollout.errors import UsageError, usable
from rollout.store import sync_folder
from rollout.types import JsonObject

__all__ = ["Checkpoints", "MetricsFile", "restore"]

OPTIMIZER = "optimizer.pt"
REMEDY = "free some space, then resume"


class Checkpoints:
    """Those of a training run: `FOLDER/STEP`, STEP being how many updates were made."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        """`keep` is how many of the latest stay."""
        self.folder = folder
        self._keep = keep

    def latest(self) -> Path | None:
        """The newest whole one."""
        found = self._all()
        return found[-1] if found else None

    def save(self, step: int, model: Any, tokenizer: Any, optimizer: Any) -> Path:
        """Write one, then remove old ones. Raises UsageError when the disk refuses."""
        target = self.folder / f"{step:06d}"
        draft = self.folder / f".{target.name}.{os.getpid()}"
        with usable(self.folder, REMEDY):
            for left in self.folder.glob(".*"):
                shutil.rmtree(left)
            draft.mkdir(parents=True)
            model.save_pretrained(draft)
            tokenizer.save_pretrained(draft)
            torch.save(optimizer.state_dict(), draft / OPTIMIZER)
            for path in filter(Path.is_file, draft.rglob("*")):
                _sync(path)
            sync_folder(draft)
            if target.exists():
                shutil.rmtree(target)
            draft.rename(target)
            sync_folder(self.folder)
            for old in self._all()[: -self._keep]:
                shutil.rmtree(old)
        return target

    def _all(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("[0-9]*") if path.is_dir())


def restore(optimizer: Any, checkpoint: Path) -> None:
    """Give an optimizer the state that it had. Raises UsageError where it can't be read."""
    path = checkpoint / OPTIMIZER
    try:
        optimizer.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{path}: {error}; resume from another checkpoint") from error


class MetricsFile:
    """One JSON object a step, appended; and TensorBoard's files where it is installed."""

    def __init__(self, folder: Path, start: int) -> None:
        """What an earlier run wrote of steps from `start` on is forgotten: they come again."""
        self._path = folder / "metrics.jsonl"
        self._forget(start)
        self._board = _tensorboard(folder / "tensorboard", start)

    def write(self, step: int, values: JsonObject) -> None:
        """Append what is known of a step."""
        line = msgspec.json.encode({"step": step, **values}) + b"\n"
        with usable(self._path, REMEDY), self._path.open("ab") as file:
            file.write(line)
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(name, value, step)
            self._board.flush()

    def read(self) -> list[JsonObject]:
        """All lines but a torn last one."""
        if not self._path.exists():
            return []
        lines = self._path.read_bytes().split(b"\n")[:-1]
        return [msgspec.json.decode(line) for line in lines]

    def _forget(self, start: int) -> None:
        kept = [line for line in self.read() if line["step"] < start]
        draft = self._path.with_suffix(".tmp")
        draft.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in kept))
        draft.replace(self._path)


def _tensorboard(folder: Path, start: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=start)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
