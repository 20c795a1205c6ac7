"""A local model under vLLM: `--model vllm:PATH` starts the server, `--base-url` uses one that runs.

ANYHARNESS_VLLM_PYTHON names an interpreter that has vLLM (else this one is used), ANYHARNESS_VLLM_ARGS
holds more of the server's options, e.g. `--enable-auto-tool-choice --tool-call-parser hermes`.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

import aiohttp

from rollout.errors import UsageError
from rollout.gateway.upstreams.openai import OpenAI
from rollout.processes import spawn

__all__ = ["VLLM"]

MODULE = "vllm.entrypoints.openai.api_server"
START_SECONDS = 1800.0
"""Loading and compiling a large model takes many minutes."""
POLL_SECONDS = 0.5
STOP_SECONDS = 10.0


class VLLM(OpenAI):
    """A vLLM server that lives as long as the run, unless it was there before."""

    def __init__(self, model: str, base_url: str, key: str = "") -> None:
        super().__init__(model, base_url, key)
        self._path = "" if base_url else model
        self._process: asyncio.subprocess.Process | None = None
        self._log: IO[bytes] | None = None

    @classmethod
    def from_spec(cls, argument: str, base_url: str) -> Self:
        if not argument:
            raise UsageError("--model vllm: names no model; write --model vllm:PATH")
        return cls(argument, base_url, os.environ.get("OPENAI_API_KEY", ""))

    async def check(self) -> None:
        """Start the server if it is ours to start, and wait until it serves."""
        if self._path and self._process is None:
            await self._start()
        await super().check()

    async def close(self) -> None:
        await super().close()
        process, self._process = self._process, None
        if process is not None:
            await _end_group(process)
        if self._log is not None:
            self._log.close()

    async def _start(self) -> None:
        port = _free_port()
        self.model = self.label = Path(self._path).name
        self.base_url = f"http://127.0.0.1:{port}/v1"
        python = os.environ.get("ANYHARNESS_VLLM_PYTHON") or sys.executable
        argv = [python, "-m", MODULE, "--model", self._path, "--served-model-name", self.model]
        argv += ["--host", "127.0.0.1", "--port", str(port)]
        argv += shlex.split(os.environ.get("ANYHARNESS_VLLM_ARGS", ""))
        try:
            self._process = await self._spawn(argv)
            async with asyncio.timeout(START_SECONDS):
                await self._healthy(self._process, f"http://127.0.0.1:{port}/health")
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise UsageError(f"vLLM was not ready after {START_SECONDS:.0f} s") from error
            raise

    async def _spawn(self, argv: list[str]) -> asyncio.subprocess.Process:
        """Start the server with its output in a file: a pipe that nobody reads would block it."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        try:
            return await spawn(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"ANYHARNESS_VLLM_PYTHON: {argv[0]} does not start: {error}"
            ) from error

    async def _healthy(self, process: asyncio.subprocess.Process, url: str) -> None:
        while process.returncode is None:
            with suppress(aiohttp.ClientError, OSError):
                async with self._http().get(url) as response:
                    if response.status == 200:
                        return
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), POLL_SECONDS)
        raise UsageError(
            f"vLLM ended (exit {process.returncode}) before it served {self._path}: {self._tail()};"
            " ANYHARNESS_VLLM_PYTHON names an interpreter that has vLLM"
        )

    def _tail(self) -> str:
        """The last line that the server printed."""
        assert self._log is not None
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 4096))
        lines = self._log.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """End the server and its workers, which share its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
