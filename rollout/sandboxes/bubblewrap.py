"""`--sandbox bubblewrap`: own file system view, own processes, own user, and no network but the gateway.

Every command is a bubblewrap of its own over the same folders: nothing has to be kept running, and
nothing outlives its command. An ordinary user gets a user namespace. Root does not, because inside one
it would still be the kernel's user 0, who owns root's files and whose processes RLIMIT_NPROC does not
count; the supervisor becomes an unprivileged user of its own instead (`AGENT_UIDS`).

Memory and disk are sampled five times a second. Processor time is not bounded, nor are files that were
removed and are still open.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from rollout.errors import SandboxError
from rollout.sandbox import Sandbox, SandboxProvider, SandboxSpec
from rollout.sandboxes import _layout
from rollout.sandboxes._folder import Folder, FolderSandbox, order_for, private_folder
from rollout.sandboxes._process import SUPERVISOR, supervise
from rollout.sandboxes._seccomp import system_call_filter
from rollout.types import JsonObject

__all__ = ["Bubblewrap"]

SYSTEM_PYTHON = "/usr/bin/python3"
USER_INSIDE = 10001
"""The agent's user id where bubblewrap may choose it, that is in a user namespace."""

SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
"""What programs need of the host's /etc, and no more."""


class Bubblewrap(SandboxProvider):
    """Isolation without a daemon, a container image, or root."""

    name = "bubblewrap"
    isolates = True

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        _layout.share_socket(spec.gateway_socket)
        async with private_folder(own_user=True) as folder:
            root = os.getuid() == 0
            command = _command(spec, folder, root)
            sandbox = FolderSandbox(
                folder,
                _layout.places(folder),
                gateway=_layout.GATEWAY,
                workspace=_layout.WORKSPACE,
                home=_layout.HOME,
                command=lambda: command,
                order=order_for(
                    spec.limits,
                    uid=folder.uid if root else 0,
                    socket=_layout.GATEWAY_SOCKET,
                    port=_layout.GATEWAY_PORT,
                    seccomp=system_call_filter(),
                    own_process_count=root or _counts_by_namespace(),
                ),
                host_env={},
            )
            try:
                yield sandbox
            finally:
                await sandbox.close()

    async def check(self) -> str:
        if shutil.which("bwrap") is None:
            return "bubblewrap is not installed; get it with: apt-get install bubblewrap"
        spec = SandboxSpec(gateway_socket=Path(os.devnull), gateway_port=0)
        try:
            async with self.open(spec) as sandbox:
                await sandbox.exec(["true"], env={})
        except SandboxError as error:
            return (
                f"bubblewrap does not work here ({error}); allow user namespaces "
                "(sysctl kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces), "
                "or use --sandbox docker"
            )
        return ""

    def fingerprint(self) -> JsonObject:
        version = subprocess.run(
            ["bwrap", "--version"], check=False, capture_output=True, text=True
        ).stdout.split()
        return {
            "sandbox": self.name,
            "version": version[-1] if version else "",
            "system_call_filter": bool(system_call_filter()),
        }


def _counts_by_namespace() -> bool:
    """Whether RLIMIT_NPROC counts one user namespace, not all processes of the user (Linux 5.14)."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return found is not None and tuple(map(int, found.groups())) >= (5, 14)


def _command(spec: SandboxSpec, folder: Folder, root: bool) -> list[str]:
    python, needs = _python()
    uid = folder.uid if root else USER_INSIDE
    readable = {
        str(SUPERVISOR): _layout.SUPERVISOR_PATH,
        str(spec.gateway_socket.absolute()): _layout.GATEWAY_SOCKET,
        **{str(path): at for at, path in _layout.write_accounts(folder, uid).items()},
        **{str(path): str(path) for path in (*needs, *map(Path.absolute, spec.programs))},
    }
    return [
        shutil.which("bwrap") or "bwrap",
        *_namespaces(root),
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
        *("--hostname", "sandbox"),
        *_system(),
        *("--proc", "/proc", "--dev", "/dev"),
        *_binds("--bind", {str(path): at for at, path in _layout.places(folder).items()}),
        *_binds("--ro-bind", readable),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--chdir", "/", "--"),
        *supervise(python, _layout.SUPERVISOR_PATH),
    ]


def _namespaces(root: bool) -> Sequence[str]:
    if not root:
        user = str(USER_INSIDE)
        return ("--unshare-all", "--uid", user, "--gid", user, "--cap-drop", "ALL")
    own = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
    # Only to become the agent's user, which gives both of them up for good.
    keep = ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    return (*own, "--unshare-cgroup-try", *keep)


def _system() -> Iterable[str]:
    """The host's programs and libraries."""
    yield from ("--ro-bind", "/usr", "/usr")
    for path in SYSTEM_FOLDERS:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    yield from ("--dir", "/etc")
    yield from _binds("--ro-bind", {path: path for path in SYSTEM_FILES if os.path.exists(path)})


def _binds(option: str, mounts: dict[str, str]) -> Iterable[str]:
    """Binds with their parents made first: those that bubblewrap makes itself only root could enter."""
    for source, target in mounts.items():
        for parent in reversed(Path(target).parents[:-1]):
            yield from ("--dir", str(parent))
        yield from (option, source, target)


def _python() -> tuple[str, list[Path]]:
    """An interpreter that is visible inside, and what must be bound for it."""
    if os.path.exists(SYSTEM_PYTHON):
        return SYSTEM_PYTHON, []
    python, prefix = _layout.host_python()
    return python, [prefix]
