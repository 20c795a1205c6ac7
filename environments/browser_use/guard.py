"""Runs one Chromium, and takes it and its folder away when it ends or when our process does.

    python -I -S guard.py FOLDER PROGRAM ARGUMENT...

Our process holds the other end of stdin. However it dies, even by SIGKILL, the pipe closes, and nothing
is left behind: no process, because orphans are handed to this one (PR_SET_CHILD_SUBREAPER, prctl(2)),
and no file outside FOLDER, because Chromium's home is in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["LOG"]

LOG = "chromium.log"
"""What Chromium printed, in FOLDER."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None)


def main(folder: str, argv: Sequence[str]) -> None:
    """Run the program until it ends or stdin does."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit())
    try:
        with open(Path(folder) / LOG, "wb") as log:
            program = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        ended = os.pidfd_open(program.pid)
        select.select([sys.stdin, ended], [], [])
    finally:
        _end_children()
        shutil.rmtree(folder, ignore_errors=True)


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end_children() -> None:
    """Kill and reap every process that descends from this one; new orphans arrive in between."""
    while children := Path("/proc/thread-self/children").read_text().split():
        for child in map(int, children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
