"""Folders that outlive nobody: held by a lock of their run, swept by a later one when that is dead.

The lock (flock) is the kernel's: it lets go when the process dies, whatever it dies of.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Self

__all__ = ["HeldFolder", "sweep"]

TRIES = 1000


class HeldFolder:
    """A private folder (mode 0700) that is this process's until `remove()`, or while a `with` lasts."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def make(cls, path: Callable[[], Path]) -> Self:
        """A new folder at one of the paths that `path` gives. Raises OSError."""
        for _ in range(TRIES):
            chosen = path()
            try:
                chosen.mkdir(mode=0o700)
            except FileExistsError:
                continue
            # Another run's sweep may have come between the two.
            if (lock := _lock(chosen)) is not None:
                return cls(chosen, lock)
        raise FileExistsError(0, "it holds too many folders; remove those of dead runs")

    @classmethod
    def temporary(cls, prefix: str) -> Self:
        """A new one among the system's temporary folders.

        A process's first one of a prefix sweeps those that dead processes left. Raises OSError.
        """
        base = Path(tempfile.gettempdir())
        _sweep_once(base, prefix)
        return cls.make(lambda: base / f"{prefix}{secrets.token_hex(4)}")

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        _remove(self.path)
        os.close(self._lock)


def sweep(folders: Iterable[Path]) -> None:
    """Remove those whose run died without cleaning up."""
    for path in folders:
        if (lock := _lock(path)) is not None:
            _remove(path)
            os.close(lock)


@cache
def _sweep_once(base: Path, prefix: str) -> None:
    sweep(base.glob(f"{prefix}*"))


def _lock(path: Path) -> int | None:
    """Hold a folder, or None when it is held already, not ours to enter, or gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.stat(path)):
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def _remove(path: Path) -> None:
    """Remove a tree, however deep it is and whatever its modes are."""
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        subprocess.run(["chmod", "-R", "u+rwX", str(path)], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", str(path)], check=False, capture_output=True)
