"""The gateway's HTTP server: one address for every episode's model calls and tools.

It listens on a TCP port of the loopback and on a Unix socket, which can be bound into a sandbox that has
no network. Everything lives below `/e/<token>`; without the token nothing is told.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Self

import msgspec
from aiohttp import web

from rollout.gateway.dialect import Dialect
from rollout.gateway.dialects import DIALECTS
from rollout.gateway.doorkeeper import Doorkeeper, quiet_logger, raise_file_limit
from rollout.gateway.model import ModelProxy
from rollout.gateway.replies import rejection
from rollout.gateway.retry import Retry
from rollout.gateway.session import Classify, Dispatch, Locate, Session
from rollout.gateway.tools import handle_mcp, handle_rest
from rollout.gateway.upstream import Upstream
from rollout.harness import Endpoint
from rollout.held import HeldFolder, sweep
from rollout.jsontext import read_json
from rollout.types import JsonObject, Task, ToolSurface

__all__ = ["Gateway", "Retry"]

Handler = Callable[[web.Request, Session], Awaitable[web.StreamResponse]]

BODY_LIMIT = 64 * 2**20
FOLDER = "anyharness-gateway-"
LONGEST_BASE = 70
HEADER_LIMIT = 2**16
"""Codex sends its turn's metadata in a header."""


class Gateway:
    """An async context manager; sessions are opened and closed while it runs. Times in seconds."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        sampling: JsonObject | None = None,
        retry: Retry | None = None,
        keep_alive: float = 10.0,
        grace: float = 5.0,
        max_output: int = 8192,
    ) -> None:
        """`sampling` holds chat parameters that override the harness's own in every call.

        `keep_alive` is the longest silence on a stream; `grace` is how long a call whose connection
        broke goes on, so that a retry can take it over; `max_output` is in tokens. It is cut to the
        context window: vLLM refuses to be asked for more.
        """
        self.upstream = upstream
        self.retry = retry or Retry()
        self.max_output = max_output = min(max_output, upstream.context_window)
        self.port = 0
        self._proxy = ModelProxy(
            upstream, sampling or {}, self.retry, keep_alive, grace, max_output
        )
        self._sessions: dict[str, Session] = {}
        self._folder: HeldFolder | None = None
        self._runner: web.AppRunner | None = None
        self._door: Doorkeeper | None = None
        self._listening: list[asyncio.Server] = []

    @property
    def url(self) -> str:
        """Its address on the host's loopback."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket(self) -> Path:
        """Its Unix socket, in a folder that only this user can enter."""
        if self._folder is None:
            raise RuntimeError("the gateway is not running")
        return self._folder.path / "gateway.sock"

    async def __aenter__(self) -> Self:
        raise_file_limit()
        base = _base()
        await asyncio.to_thread(lambda: sweep(base.glob(f"{FOLDER}*")))
        self._folder = HeldFolder.make(lambda: base / f"{FOLDER}{secrets.token_hex(4)}")
        self._runner = web.AppRunner(
            self._application(),
            access_log=None,
            logger=quiet_logger(),
            handler_cancellation=True,
            shutdown_timeout=1.0,
            max_line_size=HEADER_LIMIT,
            max_field_size=HEADER_LIMIT,
        )
        await self._runner.setup()
        assert self._runner.server is not None
        self._door = door = Doorkeeper(self._runner.server)
        loop = asyncio.get_running_loop()
        tcp = await loop.create_server(door, "127.0.0.1", 0)
        self.port = tcp.sockets[0].getsockname()[1]
        self._listening = [tcp, await loop.create_unix_server(door, str(self.socket))]
        # The folder keeps others out; a container's own user must be able to connect.
        self.socket.chmod(0o666)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in tuple(self._sessions.values()):
            self.close(session)
        for server in self._listening:
            server.close()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._folder is not None:
            self._folder.remove()
        self._runner = self._folder = None

    def open(
        self,
        *,
        task: Task,
        seed: int,
        surface: ToolSurface,
        dispatch: Dispatch,
        classify: Classify,
        locate: Locate | None = None,
    ) -> Session:
        """One episode's session: `dispatch` and `locate` are its world's, `classify` its harness's."""
        session = Session(
            task=task,
            seed=seed,
            surface=surface,
            dispatch=dispatch,
            classify=classify,
            locate=locate,
        )
        self._sessions[session.token] = session
        return session

    def endpoint(self, session: Session, base_url: str) -> Endpoint:
        """A session's address, given the gateway's as seen from where the harness runs."""
        return Endpoint(
            url=f"{base_url}/e/{session.token}",
            key=session.key,
            model=self.upstream.model,
            context_window=self.upstream.context_window,
            max_output=self.max_output,
        )

    def close(self, session: Session) -> None:
        """Seal a session and forget it; its records stay with whoever holds it."""
        session.seal()
        self._sessions.pop(session.token, None)

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=BODY_LIMIT)

        def route(method: str, path: str, handler: Handler) -> None:
            application.router.add_route(
                method, f"/e/{{token}}{path}", partial(self._routed, handler)
            )

        for dialect in DIALECTS.values():
            route("POST", f"/v1{dialect.path}", partial(self._complete, dialect))
        route("POST", "/v1/messages/count_tokens", self._count_tokens)
        route("GET", "/v1/models", self._models)
        for path in ("", "/", "/v1", "/v1/"):
            route("GET", path, _hello)
            route("HEAD", path, _hello)
        route("*", "/tools", handle_rest)
        route("*", "/tools/{name}", handle_rest)
        route("*", "/mcp", handle_mcp)
        return application

    async def _routed(self, handler: Handler, request: web.Request) -> web.StreamResponse:
        session = self._sessions.get(request.match_info["token"])
        if session is None:
            return web.Response(status=404)
        if self._door is not None and not self._door.admit(request.protocol, session):
            return web.Response(status=503, headers={"Connection": "close"})
        try:
            return await handler(request, session)
        except RecursionError:
            return web.Response(status=400, text="nested too deeply")

    async def _complete(
        self, dialect: Dialect, request: web.Request, session: Session
    ) -> web.StreamResponse:
        return await self._proxy.handle(request, session, dialect)

    async def _count_tokens(self, request: web.Request, session: Session) -> web.StreamResponse:
        dialect = DIALECTS["messages"]
        if (rejected := self._proxy.reject(request, session, dialect)) is not None:
            return rejected
        try:
            body = read_json(await session.read(request), JsonObject)
            return _json({"input_tokens": await self._proxy.count_tokens(body, dialect)})
        except ValueError as error:
            return rejection(dialect, 400, str(error), "invalid_request_error")

    async def _models(self, request: web.Request, session: Session) -> web.StreamResponse:
        """The one model, as OpenAI's and as Anthropic's clients read it."""
        model = self.upstream.model
        entry = {
            "id": model,
            "object": "model",
            "created": 0,
            "owned_by": "gateway",
            "max_model_len": self.upstream.context_window,
            "type": "model",
            "display_name": model,
            "created_at": "1970-01-01T00:00:00Z",
        }
        return _json({"object": "list", "data": [entry], "has_more": False})


def _base() -> Path:
    """Where sockets are put. Their paths are 107 bytes at most (unix(7)), which a TMPDIR may exceed."""
    folder = Path(tempfile.gettempdir())
    return folder if len(os.fsencode(folder)) < LONGEST_BASE else Path("/tmp")


async def _hello(_request: web.Request, _session: Session) -> web.StreamResponse:
    """Claude Code looks whether somebody is there before its first call."""
    return _json({})


def _json(body: JsonObject) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")
