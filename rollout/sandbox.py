"""The contract of a sandbox: where one episode's harness runs, and the only thing that it can touch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from rollout.types import JsonObject

__all__ = ["ExecResult", "Limits", "Sandbox", "SandboxProvider", "SandboxSpec"]


@dataclass(frozen=True)
class Limits:
    """What one command, with all that it starts, may use. Zero means no limit."""

    memory_mb: int = 4096
    cpus: float = 0.0
    """CPU cores. Docker limits the share of CPU time; the other sandboxes pin the command to that many
    cores, rounded up."""
    processes: int = 1024
    file_mb: int = 1024
    """Largest single file."""
    open_files: int = 8192
    disk_mb: int = 8192
    """All files that it leaves in its folders, together."""


@dataclass(frozen=True)
class SandboxSpec:
    """What a harness needs of a sandbox."""

    gateway_socket: Path
    """The gateway's Unix socket on the host."""
    gateway_port: int
    """The gateway's TCP port on the host's loopback."""
    programs: tuple[Path, ...] = ()
    """Host folders that hold the harness's program; visible inside, read-only, at the same path."""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class ExecResult:
    """How a command ended."""

    exit_code: int
    """Negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """Whether output beyond the provider's limit was thrown away."""
    limit: str = ""
    """Which of the `Limits` ended it, in words; else empty. What the agent started was too much, so this
    is the policy's failure."""


class Sandbox(ABC):
    """One running sandbox. Paths are as seen from inside, and absolute."""

    gateway: str
    """Base URL of the gateway as seen from inside, without a trailing slash."""
    workspace: str
    """The agent's working folder."""
    home: str
    """A private HOME, fresh for this episode; not under /tmp."""

    @abstractmethod
    async def write(self, files: Mapping[str, bytes | str]) -> None:
        """Write files (absolute path inside -> content), making folders as needed."""

    @abstractmethod
    async def read(self, path: str) -> bytes | None:
        """A file's content, or None where there is none. At most 100 MiB."""

    @abstractmethod
    async def exec(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None = None
    ) -> ExecResult:
        """Run a command with exactly this environment, stdin empty, until it ends.

        Cancelling the call kills the command and everything that it started. Raises SandboxError when
        the command could not be started.
        """


class SandboxProvider(ABC):
    """Makes sandboxes of one kind."""

    name: ClassVar[str]
    isolates: ClassVar[bool]
    """Whether an agent inside is kept from the host."""
    warning: str = ""
    """One line for the user before the run starts; empty when there is nothing to warn of."""

    @abstractmethod
    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """Start a sandbox; on exit everything in it is killed and its files are removed."""

    async def check(self) -> str:
        """Empty when sandboxes of this kind work here; otherwise one line: why not, and the remedy."""
        return ""

    def fingerprint(self) -> JsonObject:
        """Versions, image and limits, for the manifest."""
        return {"sandbox": self.name}
