"""Finding the executables that harnesses wrap, and asking their version."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from rollout.errors import UsageError
from rollout.processes import spawn

__all__ = ["Program"]

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Program:
    """An executable: where it is looked for, and how to get it.

    The order is: the path that the user named, the project's own `node_modules`, then PATH.
    """

    name: str
    """The command's name on PATH."""
    candidates: tuple[str, ...] = ()
    """Globs below the project's or the current folder, e.g. `node_modules/*/bin/x`."""
    install: str = ""
    """The command that installs it."""
    version_argument: str = "--version"

    async def find(self, named: str = "") -> tuple[str, str]:
        """Absolute path and version. Raises UsageError when there is none, or it does not start."""
        path = self._locate(named)
        process = await spawn(
            path,
            self.version_argument,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            stdout, stderr = await asyncio.wait_for(process.communicate(), timeout=60)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise UsageError(f"{path} {self.version_argument} did not answer in 60 s") from None
        if process.returncode != 0:
            tail = stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise UsageError(f"{path} does not start (exit {process.returncode}): {' '.join(tail)}")
        found = re.search(r"\d+(\.\d+)+\S*", stdout.decode(errors="replace"))
        return path, found.group(0) if found else stdout.decode(errors="replace").strip()

    def _locate(self, named: str) -> str:
        if named:
            return self._on_path(named, f"--harness-program {named}: no such executable")
        for root in dict.fromkeys((PROJECT, Path.cwd())):
            for pattern in self.candidates:
                for path in sorted(root.glob(pattern)):
                    if os.access(path, os.X_OK):
                        return str(path)
        return self._on_path(
            self.name, f"{self.name} is not installed; get it with: {self.install}"
        )

    @staticmethod
    def _on_path(name: str, otherwise: str) -> str:
        path = shutil.which(name)
        if path is None:
            raise UsageError(otherwise)
        return os.path.abspath(path)
