"""The private folder of one episode on the host, and the sandbox that is made of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from math import ceil
from pathlib import Path, PurePosixPath

from rollout import held
from rollout.errors import SandboxError
from rollout.sandbox import ExecResult, Limits, Sandbox
from rollout.sandboxes import _process
from rollout.sandboxes._files import read_beneath, write_beneath
from rollout.types import JsonObject

__all__ = ["AGENT_UIDS", "Folder", "FolderSandbox", "order_for", "private_folder"]

AGENT_UIDS = range(61184, 65520)
"""Users that no one else has: where we are root, each sandbox gets one of its own (the range that
systemd keeps for the same purpose; below 65536, so that it exists in containers as well)."""

MEBIBYTE = 1024 * 1024


class Folder:
    """`workspace`, `home`, `tmp` and `shm` of one sandbox, owned by its user.

    It is held as long as its run lives; that is how a later run knows what to sweep.
    """

    def __init__(self, *, own_user: bool) -> None:
        self.base = _base()
        own_user = own_user and os.getuid() == 0
        try:
            self._held = held.HeldFolder.make(lambda: self.base / _name(own_user))
        except OSError as error:
            raise SandboxError(f"{self.base}: {error.strerror}") from error
        self.path = self._held.path
        self.uid = int(self.path.name) if own_user else os.getuid()
        try:
            self.workspace, self.home, self.tmp, self.shm = map(
                self._make, ("workspace", "home", "tmp", "shm")
            )
        except OSError as error:
            self.remove()
            raise SandboxError(f"{self.path}: {error.strerror}") from error

    def _make(self, name: str) -> Path:
        folder = self.path / name
        folder.mkdir(mode=0o755)
        if self.uid != os.getuid():
            os.chown(folder, self.uid, self.uid)
        return folder

    def remove(self) -> None:
        self._held.remove()


def _name(own_user: bool) -> str:
    return str(secrets.choice(AGENT_UIDS)) if own_user else secrets.token_hex(8)


def _base() -> Path:
    """Where sandboxes live: a cache, and not under /tmp, where Codex refuses to put its helpers."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(cache).absolute() / "anyharness" / "sandboxes"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SandboxError(
            f"{base}: {error.strerror}; set XDG_CACHE_HOME to a writable folder"
        ) from error
    return base


def sweep() -> None:
    """Remove the folders of runs that died without cleaning up."""
    held.sweep(_base().iterdir())


@contextlib.asynccontextmanager
async def private_folder(*, own_user: bool) -> AsyncIterator[Folder]:
    """A folder for one sandbox, removed at the end."""
    await _sweep_once()
    folder = Folder(own_user=own_user)
    try:
        yield folder
    finally:
        await asyncio.shield(asyncio.to_thread(folder.remove))


_swept = False


async def _sweep_once() -> None:
    global _swept
    if not _swept:
        _swept = True
        await asyncio.to_thread(sweep)


class FolderSandbox(Sandbox):
    """A sandbox over a private folder; `command` says how a supervisor is started in it."""

    def __init__(
        self,
        folder: Folder,
        places: Mapping[str, Path],
        *,
        gateway: str,
        workspace: str,
        home: str,
        command: Callable[[], Sequence[str]],
        order: JsonObject,
        host_env: Mapping[str, str],
    ) -> None:
        self.gateway = gateway
        self.workspace = workspace
        self.home = home
        self._folder = folder
        self._places = places
        self._command = command
        self._order = order
        self._host_env = host_env
        self._running: set[asyncio.subprocess.Process] = set()

    async def write(self, files: Mapping[str, bytes | str]) -> None:
        for path, content in files.items():
            root, parts = self._locate(path)
            data = content.encode() if isinstance(content, str) else content
            await asyncio.to_thread(write_beneath, root, parts, data, self._folder.uid)

    async def read(self, path: str) -> bytes | None:
        root, parts = self._locate(path)
        return await asyncio.to_thread(read_beneath, root, parts)

    def _locate(self, path: str) -> tuple[Path, tuple[str, ...]]:
        parts = PurePosixPath(path).parts
        if ".." in parts or "\0" in path:
            raise SandboxError(f"{path!r} is not a plain path")
        for place, root in self._places.items():
            above = PurePosixPath(place).parts
            if parts[: len(above)] == above and len(parts) > len(above):
                return root, parts[len(above) :]
        raise SandboxError(f"{path!r} is not below {', '.join(self._places)}")

    async def exec(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None
    ) -> ExecResult:
        order = {
            **self._order,
            "argv": list(argv),
            "env": dict(env),
            "cwd": cwd or self.workspace,
            "folders": list(self._places),
        }
        self._unlock()
        return await _process.run(self._command(), order, env=self._host_env, running=self._running)

    def _unlock(self) -> None:
        """An agent may shut its folders; that must not keep the next command out."""
        for root in self._places.values():
            with contextlib.suppress(OSError):
                root.chmod(0o755)

    async def close(self) -> None:
        """End the commands that still run."""
        await asyncio.gather(*map(_process.stop, tuple(self._running)))


def order_for(
    limits: Limits,
    *,
    uid: int = 0,
    socket: str = "",
    port: int = 0,
    seccomp: bytes = b"",
    own_process_count: bool = False,
    container: bool = False,
) -> JsonObject:
    """What a supervisor is told beside the command itself."""
    rlimits = {"CORE": 0}
    if limits.file_mb:
        rlimits["FSIZE"] = limits.file_mb * MEBIBYTE
    if limits.open_files:
        rlimits["NOFILE"] = limits.open_files
    if limits.processes and own_process_count:
        rlimits["NPROC"] = limits.processes
    return {
        "uid": uid,
        "socket": socket,
        "port": port,
        "memory": limits.memory_mb * MEBIBYTE,
        "disk": limits.disk_mb * MEBIBYTE,
        "cpus": 0 if container else ceil(limits.cpus),
        "tasks": limits.processes,
        "rlimits": rlimits,
        "seccomp": seccomp.hex(),
        "container": container,
    }
