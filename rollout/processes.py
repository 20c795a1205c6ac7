"""Starting processes so that a cancellation at the wrong moment can neither hang nor leak."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

__all__ = ["spawn"]


async def spawn(*argv: str, **options: Any) -> asyncio.subprocess.Process:
    """`asyncio.create_subprocess_exec`, safe to cancel.

    CPython's own waits forever when it is cancelled between the fork and the connection of the pipes
    (`BaseSubprocessTransport._wait`). Here a cancellation lets the start finish, kills the process, and
    only then goes on.
    """
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*argv, **options))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        process = await starting
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
