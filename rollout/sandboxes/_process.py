"""Running one command under the supervisor, as the host sees it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from rollout.errors import SandboxError, boundary
from rollout.processes import spawn
from rollout.sandbox import ExecResult
from rollout.sandboxes._supervisor import MARK
from rollout.types import JsonObject

__all__ = ["OUTPUT_LIMIT", "SUPERVISOR", "answer_of", "run", "stop", "supervise"]

SUPERVISOR = Path(__file__).with_name("_supervisor.py")

OUTPUT_LIMIT = 10 * 1024 * 1024
"""Bytes kept of stdout and of stderr, each. The rest is read and thrown away."""

REPORT_LIMIT = 4096
GRACE = 5.0
"""Seconds that a supervisor has to take its sandbox down, before it is killed itself."""


def supervise(python: str, script: str) -> list[str]:
    """The command line of the supervisor."""
    return [python, "-I", "-S", "-X", "utf8", script]


class Output:
    """The first `OUTPUT_LIMIT` bytes of a stream, and its very end, where the report is."""

    def __init__(self) -> None:
        self.kept = bytearray()
        self.cut = False

    async def drain(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(1 << 16):
            self.kept += chunk
            if len(self.kept) > OUTPUT_LIMIT + 2 * REPORT_LIMIT:
                del self.kept[OUTPUT_LIMIT:-REPORT_LIMIT]
                self.cut = True

    def split(self) -> tuple[bytes, bytes]:
        """What the command printed, and the report behind it."""
        printed, mark, report = bytes(self.kept).rpartition(MARK)
        return (printed, report) if mark else (report, b"")


async def run(
    command: Sequence[str],
    order: JsonObject,
    *,
    env: Mapping[str, str],
    running: set[asyncio.subprocess.Process],
) -> ExecResult:
    """Start a supervisor, give it its order, and wait for its report.

    The process is in `running` as long as it lives: closing its stdin ends it and all that it started.
    Raises SandboxError when the sandbox or the command could not be started.
    """
    process = await _start(command, env)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    stdout, stderr = Output(), Output()
    running.add(process)
    drains = [
        asyncio.create_task(stdout.drain(process.stdout)),
        asyncio.create_task(stderr.drain(process.stderr)),
    ]
    try:
        with contextlib.suppress(ConnectionError):  # it died at once: its stderr says why
            process.stdin.write(json.dumps(order).encode() + b"\n")
            await process.stdin.drain()
        await process.wait()
        # Everything is dead, so the streams have ended, unless someone killed the supervisor.
        await asyncio.wait(drains, timeout=GRACE)
    finally:
        await asyncio.shield(_end(process, drains))
        running.discard(process)
    return _result(stdout, stderr, process.returncode, order)


async def _start(command: Sequence[str], env: Mapping[str, str]) -> asyncio.subprocess.Process:
    with boundary(SandboxError, f"starting {command[0]}"):
        return await spawn(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
            start_new_session=True,
        )


async def stop(process: asyncio.subprocess.Process) -> None:
    """Take a sandbox down: by its stdin, or by force."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), GRACE)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError, TimeoutError):
            os.killpg(process.pid, signal.SIGKILL)
            await asyncio.wait_for(process.wait(), GRACE)


async def _end(process: asyncio.subprocess.Process, drains: list[asyncio.Task[None]]) -> None:
    await stop(process)
    for task in drains:
        task.cancel()
    await asyncio.gather(*drains, return_exceptions=True)


def _result(stdout: Output, stderr: Output, code: int | None, order: JsonObject) -> ExecResult:
    printed, raw = stderr.split()
    try:
        report = json.loads(raw)
    except ValueError:
        tail = printed.decode(errors="replace").strip()[-500:] or "no output"
        how = f"killed by signal {-code}" if code and code < 0 else f"exit code {code}"
        raise SandboxError(f"the sandbox ended without a report ({how}): {tail}") from None
    if "error" in report:
        raise SandboxError(f"{order['argv'][0]} could not be started: {report['error']}")
    limit = _limit(report, order)
    if report["disk_full"] and not report["over_disk"]:
        raise SandboxError("the disk of this machine was full: what the command did was in vain")
    if limit:
        printed += f"\nkilled: {limit}\n".encode()
    return ExecResult(
        exit_code=report["status"],
        stdout=bytes(stdout.kept[:OUTPUT_LIMIT]),
        stderr=printed[:OUTPUT_LIMIT],
        truncated=stdout.cut
        or stderr.cut
        or len(stdout.kept) > OUTPUT_LIMIT
        or len(printed) > OUTPUT_LIMIT,
        limit=limit,
    )


def _limit(report: JsonObject, order: JsonObject) -> str:
    if report["over_memory"]:
        return f"more than {order['memory'] >> 20} MiB of memory"
    if report["over_disk"]:
        return f"more than {order['disk'] >> 20} MiB of disk"
    return f"more than {order['tasks']} processes" if report["over_tasks"] else ""


async def answer_of(*command: str) -> tuple[int, str]:
    """Exit code and output (both streams) of a short command on the host; 127 when there is none."""
    try:
        process = await spawn(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except FileNotFoundError:
        return 127, f"{command[0]}: not found"
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    return process.returncode or 0, output.decode(errors="replace").strip()
