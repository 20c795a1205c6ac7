"""`--sandbox local`: a private folder, and nothing else that is private.

The command has the host's network and file system and runs as the same user. Its processes, memory and
output are bounded, and all that it started ends with it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rollout.sandbox import Sandbox, SandboxProvider, SandboxSpec
from rollout.sandboxes._folder import FolderSandbox, order_for, private_folder
from rollout.sandboxes._process import SUPERVISOR, supervise

__all__ = ["Local"]


class Local(SandboxProvider):
    """No isolation: for trusted harnesses and models only."""

    name = "local"
    isolates = False
    warning = (
        "the local sandbox does not isolate: an agent can read and change this machine's files"
    )

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        async with private_folder(own_user=False) as folder:
            workspace, home = str(folder.workspace), str(folder.home)
            sandbox = FolderSandbox(
                folder,
                {workspace: folder.workspace, home: folder.home},
                gateway=f"http://127.0.0.1:{spec.gateway_port}",
                workspace=workspace,
                home=home,
                command=lambda: supervise(sys.executable, str(SUPERVISOR)),
                order=order_for(spec.limits),
                host_env={},
            )
            try:
                yield sandbox
            finally:
                await sandbox.close()
