"""Finding the executables that harnesses wrap, and asking their version."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from rollout.errors import UsageError
from rollout.processes import spawn

__all__ = ["NODE", "SCRIPTS", "Found", "Program"]

PROJECT = Path(__file__).resolve().parent.parent

SCRIPTS = frozenset({".js", ".mjs", ".cjs"})
"""Suffixes of files that Node runs."""


@dataclass(frozen=True)
class Found:
    """An executable on this machine."""

    path: str
    version: str = ""
    runtime: str = ""
    """What starts it where it is a script; empty where it starts by itself."""

    @property
    def command(self) -> tuple[str, ...]:
        """The words before its arguments."""
        return (self.runtime, self.path) if self.runtime else (self.path,)


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
    oldest: tuple[int, ...] = ()
    """The oldest version that works; empty where any does."""
    runtime: Program | None = None
    """What starts it where it is a script: Node for JavaScript."""
    package: str = ""
    """Its npm package: the version pinned for it is the one that is tested."""

    async def find(self, named: str = "") -> Found:
        """Look for it and start it. Raises UsageError when there is none, or it does not work."""
        path, runtime = self._locate(named), ""
        if self.runtime is not None and Path(path).resolve().suffix in SCRIPTS:
            runtime = (await self.runtime.find()).path
        version = await self._version(Found(path, runtime=runtime))
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[: len(self.oldest)])
        if numbers < self.oldest:
            needed = ".".join(map(str, self.oldest))
            raise UsageError(
                f"{path} is {self.name} {version}, {needed} or newer is needed; "
                f"get it with: {self.install}"
            )
        return Found(path, version, runtime)

    @property
    def tested(self) -> str:
        """The version pinned in this project's package.json files; empty where they don't name it."""
        for file in (PROJECT / "package.json", *sorted(PROJECT.glob("programs/*/package.json"))):
            if file.is_file():
                pinned = json.loads(file.read_text(encoding="utf-8"))["dependencies"]
                if self.package in pinned:
                    return str(pinned[self.package])
        return ""

    async def _version(self, found: Found) -> str:
        process = await spawn(
            *found.command,
            self.version_argument,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        path = found.path
        try:
            stdout, stderr = await asyncio.wait_for(process.communicate(), timeout=60)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise UsageError(f"{path} {self.version_argument} did not answer in 60 s") from None
        if process.returncode != 0:
            tail = stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise UsageError(f"{path} does not start (exit {process.returncode}): {' '.join(tail)}")
        told = stdout.decode(errors="replace")
        number = re.search(r"\d+(\.\d+)+[^\s,)]*", told)
        return number.group(0) if number else told.strip()

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


NODE = Program(
    name="node",
    candidates=("programs/*/node_modules/node-linux-*/bin/node",),
    install="make harnesses, or your system's packages of Node.js",
    oldest=(22, 19),
)
"""Runs harnesses written in JavaScript; what is needed is the newest that any of them asks for."""
