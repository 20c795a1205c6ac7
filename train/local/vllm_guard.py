"""What is left of an engine is gone when the trainer is, even one that was killed.

vLLM's processes outlive a parent that gets SIGKILL, with all the memory of the GPU that they hold: a
training that is resumed would find no room. A shell waits for the end of a pipe that only the trainer
holds, and ends them then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Guard"]

SHARED_MEMORY = Path("/dev/shm")
SCRIPT = """
while read -r pid; do pids="$pids $pid"; done
[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
rm -rf "$1"
"""


class Guard:
    """Has a folder of its own, in memory where that has room, which goes with the rest."""

    def __init__(self, room: int) -> None:
        """`room` is how many bytes the folder is to hold."""
        self.folder = Path(tempfile.mkdtemp(prefix="anyharness-", dir=_memory(room)))
        self.process = subprocess.Popen(
            ["sh", "-c", SCRIPT, "guard", str(self.folder)],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the trainer
        )

    def add(self, pids: Iterable[int]) -> None:
        """Processes that must not outlive this one."""
        assert self.process.stdin is not None
        for pid in pids:
            print(pid, file=self.process.stdin, flush=True)

    def close(self) -> None:
        """End the processes and remove the folder."""
        with self.process:  # which closes the pipe, and waits
            pass


def _memory(room: int) -> Path | None:
    """Containers often have no more than 64 MB of it."""
    usable = os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free > room
    return SHARED_MEMORY if usable else None
