"""`--services original`: claw-eval's own servers, one process each, as they are in the user's checkout.

A server listens on a socket that this process has bound to a free loopback port and handed down, so
there is no port to collide on, nobody else's listener to mistake for ours, and nothing to poll for: a
request waits in the socket's queue until the server takes it, and fails at once when the server dies.

Starting one takes seconds, resetting one milliseconds. A server is therefore reset before every attempt
and kept for the next that needs the same program with the same settings. All state of the original
servers is module globals that their reset routes set anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from environments.claw.backend import Backend
from environments.claw.checkout import server_script
from environments.claw.task import ServiceSpec
from rollout.errors import EnvironmentFault, UsageError
from rollout.processes import spawn
from rollout.types import JsonObject, ToolReply

__all__ = ["Server", "ServerPool"]

READY_SECONDS = 120.0
"""Until a server answers; claw-eval's own 10 s are too short for a busy machine."""
CALL_SECONDS = 30.0
"""For one call, as in claw-eval's dispatcher."""
MAX_IDLE = 24
"""Servers kept for later attempts at most; each takes about 50 MB."""
TAIL = 4000
"""Bytes of a server's stderr that are kept, to say why it died."""

PACKAGES = "fastapi uvicorn pypdf trafilatura requests httpx"

LAUNCHER = """
import os, runpy, socket, sys
import uvicorn
number, script = sys.argv[1:]
def run(app, **options):
    config = uvicorn.Config(app, log_level="warning", lifespan="off")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(number))])
uvicorn.run = run
sys.argv = [script]
sys.path[0] = os.path.dirname(script)
runpy.run_path(script, run_name="__main__")
"""
"""Runs a server program as `python server.py` would, on the socket that it is handed."""


class Server(Backend):
    """One running original server."""

    def __init__(self, spec: ServiceSpec, client: aiohttp.ClientSession) -> None:
        self.key = key_of(spec)
        self.prefix = spec.prefix
        self._client = client
        self._process: asyncio.subprocess.Process | None = None
        self._url = ""
        self._silent = False
        self._errors: deque[bytes] = deque(maxlen=64)
        self._drain: asyncio.Task[None] | None = None

    async def start(self, checkout: Path, python: str, spec: ServiceSpec) -> None:
        """Start it and wait until it answers. Raises EnvironmentFault with what it printed."""
        script = server_script(checkout, spec.kind)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._silent = False
            self._errors.clear()
            self._url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            self._process = await spawn(
                *(python, "-c", LAUNCHER, str(listener.fileno()), str(script)),
                cwd=checkout,
                env=_environment(spec.env),
                pass_fds=(listener.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        self._drain = asyncio.create_task(self._read_errors(self._process))
        try:
            await self._get_ready(spec)
        except BaseException:
            await self.stop()
            raise

    async def _get_ready(self, spec: ServiceSpec) -> None:
        reply = await self._request("GET", f"/{self.prefix}/audit", None, READY_SECONDS)
        if reply.status != 200:
            if self._drain is not None and reply.status == 0:
                await asyncio.wait({self._drain}, timeout=5.0)
            printed = b"".join(self._errors).decode(errors="replace").strip()[-TAIL:]
            why = printed.splitlines()[-1] if printed else reply.body
            fault = EnvironmentFault(f"claw-eval's {spec.kind} server did not start: {why}")
            fault.detail = printed
            raise fault

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        """A pipe that nobody reads would stop the server once it is full."""
        assert process.stderr is not None
        while chunk := await process.stderr.read(TAIL):
            self._errors.append(chunk)

    async def reset(self) -> None:
        """As before the first attempt. Raises EnvironmentFault."""
        reply = await self._request("POST", f"/{self.prefix}/reset", None, CALL_SECONDS)
        if reply.body != {"status": "reset"}:
            raise EnvironmentFault(f"claw-eval's {self.prefix} server: reset failed: {reply.body}")

    async def send(self, method: str, path: str, body: Any) -> ToolReply:
        reply = await self._request(method, path, body, CALL_SECONDS)
        return reply if reply.status else ToolReply(status=500, body={"error": reply.body})

    async def audit(self) -> JsonObject:
        reply = await self._request("GET", f"/{self.prefix}/audit", None, CALL_SECONDS)
        if reply.status != 200 or not isinstance(reply.body, dict):
            raise EnvironmentFault(f"claw-eval's {self.prefix} server: no audit: {reply.body}")
        return reply.body

    async def _request(self, method: str, path: str, body: Any, seconds: float) -> ToolReply:
        """Status 0 and the reason where there is no reply."""
        try:
            async with self._client.request(
                method,
                self._url + path,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as reply:
                return _reply(reply.status, await reply.text())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._silent = True
            return ToolReply(status=0, body=str(error) or type(error).__name__)

    @property
    def usable(self) -> bool:
        """Whether it runs, and has answered whatever it was asked."""
        running = self._process is not None and self._process.returncode is None
        return running and not self._silent

    async def stop(self) -> None:
        """Kill it with all that it started: it holds nothing worth saving."""
        if self._process is None or self._drain is None:
            return
        # Once it has ended and nobody holds the pipe, its group's number may be another's.
        if self._process.returncode is None or not self._drain.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        # What left the group may hold the pipe for good.
        await asyncio.wait({self._drain}, timeout=5.0)
        self._drain.cancel()


class ServerPool:
    """The original servers of a run."""

    def __init__(self, checkout: Path, python: str, settings: Mapping[str, str]) -> None:
        """`settings` are variables that every server gets."""
        self.checkout = checkout
        self.python = python
        self._settings = dict(settings)
        self._idle: list[Server] = []
        self._client: aiohttp.ClientSession | None = None
        self._taken: set[Server] = set()

    async def check(self) -> None:
        """Raises UsageError when the interpreter can't run the servers."""
        remedy = f"{self.python} -m pip install {PACKAGES}, or name another interpreter in "
        remedy += "ANYHARNESS_CLAW_EVAL_PYTHON"
        try:
            process = await spawn(
                *(self.python, "-c", "import fastapi, uvicorn"),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise UsageError(f"--services original: {self.python}: {error.strerror}") from None
        _, printed = await process.communicate()
        if process.returncode:
            why = printed.decode(errors="replace").strip().splitlines()[-1:] or ["it failed"]
            raise UsageError(f"--services original: {why[0]}; {remedy}")

    @asynccontextmanager
    async def lease(self, specs: Sequence[ServiceSpec]) -> AsyncIterator[dict[str, Backend]]:
        """The servers of one attempt by name, started side by side, reset, and nobody else's."""
        given = [self._with_settings(spec) for spec in specs]
        servers = [self._reserve(spec) for spec in given]
        try:
            starts = map(self._make_ready, servers, given)
            for result in await asyncio.gather(*starts, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
            yield {spec.name: server for spec, server in zip(given, servers, strict=True)}
        finally:
            await asyncio.shield(self._give_back(servers))

    def _with_settings(self, spec: ServiceSpec) -> ServiceSpec:
        return ServiceSpec(name=spec.name, kind=spec.kind, env={**spec.env, **self._settings})

    def _reserve(self, spec: ServiceSpec) -> Server:
        """An idle server that will do, or one yet to be started."""
        key = key_of(spec)
        for server in self._idle:
            if server.key == key and server.usable:
                self._idle.remove(server)
                break
        else:
            if self._client is None:
                # A server closes an idle connection at the moment that it is used again.
                connector = aiohttp.TCPConnector(force_close=True)
                self._client = aiohttp.ClientSession(connector=connector)
            server = Server(spec, self._client)
        self._taken.add(server)
        return server

    async def _make_ready(self, server: Server, spec: ServiceSpec) -> None:
        try:
            if server.usable:
                await server.reset()
                return
        except EnvironmentFault:
            await server.stop()  # It died, or will not do any more.
        await server.start(self.checkout, self.python, spec)
        await server.reset()

    async def _give_back(self, servers: Sequence[Server]) -> None:
        self._taken.difference_update(servers)
        self._idle += [server for server in servers if server.usable]
        dead = [server for server in servers if not server.usable]
        surplus, self._idle = self._idle[:-MAX_IDLE], self._idle[-MAX_IDLE:]
        await asyncio.gather(*(server.stop() for server in (*dead, *surplus)))

    async def close(self) -> None:
        """Stop them all."""
        servers = [*self._idle, *self._taken]
        self._idle, self._taken = [], set()
        await asyncio.gather(*(server.stop() for server in servers))
        if self._client is not None:
            await self._client.close()


def key_of(spec: ServiceSpec) -> str:
    """Equal for services that one process can serve in turn."""
    return json.dumps([spec.kind, spec.env], sort_keys=True)


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's, without proxies, which would stand between the server and the real web's cache."""
    inherited = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    # Errors are injected before a call gets here, by seed.
    return {**inherited, **settings, "ERROR_RATE": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def _reply(status: int, text: str) -> ToolReply:
    try:
        return ToolReply(status=status, body=json.loads(text))
    except ValueError:
        # A crash, which FastAPI reports in plain text: a 500 for claw-eval's dispatcher too.
        return ToolReply(status=500, body={"error": text})
