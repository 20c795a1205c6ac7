"""What a sandbox with a file system of its own looks like from inside; the same for all of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rollout.errors import SandboxError
from rollout.sandboxes._folder import Folder

__all__ = [
    "GATEWAY",
    "GATEWAY_PORT",
    "GATEWAY_SOCKET",
    "HOME",
    "SUPERVISOR_PATH",
    "WORKSPACE",
    "host_python",
    "places",
    "share_socket",
    "write_accounts",
]

WORKSPACE = "/workspace"
HOME = "/home/agent"
SUPERVISOR_PATH = "/run/anyharness/supervisor.py"
GATEWAY_SOCKET = "/run/anyharness/gateway.sock"
GATEWAY_PORT = 18080
"""Each command has a loopback of its own, so one fixed port does for all."""
GATEWAY = f"http://127.0.0.1:{GATEWAY_PORT}"


def places(folder: Folder) -> dict[str, Path]:
    """Folder inside -> folder on the host, for what the agent may write."""
    return {
        WORKSPACE: folder.workspace,
        HOME: folder.home,
        "/tmp": folder.tmp,
        "/dev/shm": folder.shm,
    }


def write_accounts(folder: Folder, uid: int) -> dict[str, Path]:
    """Files of /etc that are of our own making: the host's accounts and names stay its own.

    Raises SandboxError.
    """
    texts = {
        "passwd": f"root:x:0:0:root:/root:/bin/sh\nagent:x:{uid}:{uid}::{HOME}:/bin/bash\n",
        "group": f"root:x:0:\nagent:x:{uid}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }
    etc = folder.path / "etc"
    try:
        etc.mkdir(mode=0o755)
        for name, text in texts.items():
            (etc / name).write_text(text)
            (etc / name).chmod(0o644)
    except OSError as error:
        raise SandboxError(f"{etc}: {error.strerror}") from error
    return {f"/etc/{name}": etc / name for name in texts}


def share_socket(socket: Path) -> None:
    """Let a sandbox's own user connect. On the host, the socket's private folder keeps others out."""
    if os.getuid() == 0 and socket.is_socket():
        socket.chmod(0o666)


def host_python() -> tuple[str, Path]:
    """This interpreter without its virtual environment, and the folder that it needs."""
    return os.path.realpath(sys.executable), Path(sys.base_prefix).resolve()
