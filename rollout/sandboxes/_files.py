"""Reading and writing below a folder that an agent may have filled with traps.

Every component is opened by itself and without following links, so neither a symlink planted by the
agent nor one swapped in at the last moment leads out of the folder (what openat2(2) calls
RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, without needing its system call).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from rollout.errors import SandboxError

__all__ = ["READ_LIMIT", "read_beneath", "write_beneath"]

READ_LIMIT = 100 * 1024 * 1024
"""Bytes of a file that are read; what is beyond is left out."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# O_NONBLOCK: opening a FIFO must not wait for its other end.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY

NOTHING_THERE = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.ELOOP,  # a symlink
    errno.ENXIO,  # a socket
    errno.EACCES,
    errno.ENAMETOOLONG,
}


def read_beneath(root: Path, parts: Sequence[str]) -> bytes | None:
    """Content of a regular file below `root`; None when there is none, links and devices included."""
    try:
        with contextlib.ExitStack() as stack:
            folder = _open(stack, str(root), FOLDER, None)
            for part in parts[:-1]:
                folder = _open(stack, part, FOLDER, folder)
            file = _open(stack, parts[-1], FILE, folder)
            return _content(file) if stat.S_ISREG(os.fstat(file).st_mode) else None
    except OSError as error:
        if error.errno in NOTHING_THERE:
            return None
        raise SandboxError(f"reading {'/'.join(parts)} in the sandbox: {error.strerror}") from error


def write_beneath(root: Path, parts: Sequence[str], data: bytes, uid: int) -> None:
    """Put a file below `root`, owned by `uid`; missing folders are made.

    What stands in its place, or in that of a folder above it, is put aside and never followed: an agent
    can't keep a file out. Raises SandboxError.
    """
    temporary = f".{secrets.token_hex(8)}"
    try:
        with contextlib.ExitStack() as stack:
            folder = _open(stack, str(root), FOLDER, None)
            for part in parts[:-1]:
                folder = _subfolder(stack, part, folder, uid)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            file = _open(stack, temporary, flags, folder)
            try:
                os.fchown(file, uid, uid if uid != os.getuid() else -1)
                with os.fdopen(os.dup(file), "wb") as stream:
                    stream.write(data)
                _rename(temporary, parts[-1], folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise
    except OSError as error:
        raise SandboxError(f"writing {'/'.join(parts)} in the sandbox: {error.strerror}") from error


def _open(stack: contextlib.ExitStack, name: str, flags: int, folder: int | None) -> int:
    fd = os.open(name, flags, 0o644, dir_fd=folder)
    stack.callback(os.close, fd)
    return fd


def _subfolder(stack: contextlib.ExitStack, name: str, folder: int, uid: int) -> int:
    try:
        os.mkdir(name, 0o755, dir_fd=folder)
    except FileExistsError:
        try:
            return _open(stack, name, FOLDER, folder)
        except OSError as error:
            if error.errno not in NOTHING_THERE:
                raise
        _put_aside(name, folder)
        os.mkdir(name, 0o755, dir_fd=folder)
    fd = _open(stack, name, FOLDER, folder)
    os.fchown(fd, uid, uid if uid != os.getuid() else -1)
    return fd


def _rename(old: str, new: str, folder: int) -> None:
    try:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    except (IsADirectoryError, FileExistsError):
        _put_aside(new, folder)
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)


def _put_aside(name: str, folder: int) -> None:
    os.rename(name, f".{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=folder)


def _content(file: int) -> bytes:
    with os.fdopen(os.dup(file), "rb") as stream:
        return stream.read(READ_LIMIT)
