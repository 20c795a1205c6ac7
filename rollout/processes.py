"""Processes: starting them so that no cancellation hangs or leaks, and ending this one in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import Any

__all__ = ["cancel_on_signals", "spawn"]


def cancel_on_signals() -> None:
    """Have SIGINT, SIGTERM and SIGHUP cancel the task that calls this, so that it can clean up."""
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup sets it
            loop.add_signal_handler(number, this.cancel)


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
