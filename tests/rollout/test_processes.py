"""Starting a process survives a cancellation at any moment: nothing hangs, nothing is left."""

import asyncio
import os

import pytest

from rollout.processes import spawn

MARK = "ANYHARNESS_TEST_SPAWN"


def marked() -> list[str]:
    """Processes that carry this test's mark in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"{MARK}={os.getpid()}".encode() in file.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            continue
    return found


async def test_a_cancelled_start_ends_and_leaves_no_process() -> None:
    env = {**os.environ, MARK: str(os.getpid())}
    for steps in range(40):
        starting = asyncio.create_task(
            spawn("sleep", "600", env=env, stdout=asyncio.subprocess.PIPE)
        )
        for _ in range(steps % 8):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    assert not marked()


async def test_a_missing_program_is_the_callers_to_handle() -> None:
    with pytest.raises(FileNotFoundError):
        await spawn("/nowhere/program")
