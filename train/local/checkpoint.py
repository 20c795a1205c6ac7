"""Checkpoints that are whole or not there, and the metrics beside them.

A checkpoint is a folder that `from_pretrained` reads, with the optimizer's state. It is written under
another name, brought to the disk, then renamed: whoever is killed meanwhile finds the one before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import torch

from rollout.errors import UsageError, usable
from rollout.store import sync_folder
from rollout.text import one_line
from rollout.types import JsonObject, Record

__all__ = ["Checkpoints", "MetricsFile", "restore", "save_model"]

OPTIMIZER = "optimizer.pt"
DRAFT = ".draft"
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
        save_model(model, tokenizer, target, optimizer)
        with usable(self.folder, REMEDY):
            for old in self._all()[: -self._keep]:
                shutil.rmtree(old)
        return target

    def _all(self) -> list[Path]:
        """Ours alone: `000040-best` is a copy that somebody wants to keep."""
        numbered = (path for path in self.folder.glob("*") if path.name.isdecimal())
        return sorted(path for path in numbered if path.is_dir())


def save_model(model: Any, tokenizer: Any, target: Path, optimizer: Any = None) -> None:
    """Write a checkpoint in place of `target`. Raises UsageError when the disk refuses."""
    for left in target.parent.glob(f".*{DRAFT}"):  # of a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    draft = target.with_name(f".{target.name}{DRAFT}")
    with _written(draft):
        draft.mkdir(parents=True)
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        if optimizer is not None:
            torch.save(optimizer.state_dict(), draft / OPTIMIZER)
        for path in filter(Path.is_file, draft.rglob("*")):
            _sync(path)
        sync_folder(draft)
        if target.exists():
            shutil.rmtree(target)
        draft.rename(target)
        sync_folder(target.parent)


@contextmanager
def _written(draft: Path) -> Iterator[None]:
    """Whatever fails inside was the disk: torch and safetensors have errors of their own for that."""
    try:
        yield
    except Exception as error:
        shutil.rmtree(draft, ignore_errors=True)  # it may be what fills the disk
        told = getattr(error, "strerror", None) or one_line(str(error))
        raise UsageError(f"{draft.parent}: no checkpoint written ({told}); {REMEDY}") from error


def restore(optimizer: Any, checkpoint: Path) -> None:
    """Give an optimizer the state that it had. Raises UsageError where it can't be read."""
    path = checkpoint / OPTIMIZER
    try:
        optimizer.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # there is no end to what a damaged pickle raises
        told = one_line(str(error)) or type(error).__name__
        raise UsageError(f"{path} is damaged: {told}") from error


class _Step(Record, frozen=True):
    step: int


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
        return [self._line(number, line) for number, line in enumerate(lines, 1)]

    def _line(self, number: int, line: bytes) -> JsonObject:
        try:
            msgspec.json.decode(line, type=_Step)
            values: JsonObject = msgspec.json.decode(line)
            return values
        except msgspec.DecodeError as error:
            raise UsageError(
                f"{self._path}, line {number} is damaged ({error}): restore or remove it"
            ) from error

    def _forget(self, start: int) -> None:
        kept = [line for line in self.read() if line["step"] < start]
        draft = self._path.with_suffix(".tmp")
        with usable(self._path, REMEDY):
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
