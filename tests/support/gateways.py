"""A running gateway with one open session, and a client that plays the harness."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from support.scripted_server import ScriptedServer

from rollout.gateway.server import Gateway, Retry
from rollout.gateway.session import Session
from rollout.gateway.upstream import Upstream
from rollout.gateway.upstreams.openai import OpenAI
from rollout.types import JsonObject, Task, ToolReply

__all__ = ["PATHS", "QUICK", "Client", "connected", "episode", "said", "upstream_of"]

QUICK = Retry(tries=3, budget=60.0, base=0.001, cap=0.002)

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}


def said(text: str, dialect: str = "chat", **more: Any) -> JsonObject:
    """A request in which the user says `text`."""
    if dialect == "responses":
        return {"model": "m", "input": text, **more}
    limit = {"max_tokens": 100} if dialect == "messages" else {}
    return {"model": "m", "messages": [{"role": "user", "content": text}], **limit, **more}


async def upstream_of(server: ScriptedServer) -> Upstream:
    upstream = OpenAI(server.model, server.url, server.key)
    await upstream.check()
    return upstream


@dataclass
class Client:
    """Talks to one session as its harness would."""

    gateway: Gateway
    session: Session
    http: aiohttp.ClientSession

    @property
    def base(self) -> str:
        return self.gateway.endpoint(self.session, self.gateway.url).url

    def post(
        self,
        body: JsonObject,
        dialect: str = "chat",
        *,
        key: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        """An aiohttp request context to the dialect's path."""
        bearer = {"Authorization": f"Bearer {self.session.key if key is None else key}"}
        return self.http.post(
            self.base + PATHS[dialect], json=body, headers={**bearer, **(headers or {})}
        )

    async def ask(self, body: JsonObject, dialect: str = "chat", **options: Any) -> Any:
        """Status and JSON body, or text for a stream."""
        async with self.post(body, dialect, **options) as response:
            if response.content_type == "application/json":
                return response.status, await response.json()
            return response.status, await response.text()


async def _no_tool(name: str, arguments: Any) -> ToolReply:
    return ToolReply(status=404, body={"error": f"no tool named {name!r}"})


def connected(
    gateway: Gateway, http: aiohttp.ClientSession, *, task: Task | None = None, **options: Any
) -> Client:
    """A new session of a running gateway."""
    settings: dict[str, Any] = {
        "task": task or Task(id="t", prompt="do it"),
        "seed": 0,
        "surface": "native",
        "dispatch": _no_tool,
        "classify": lambda headers, body: ("main", ""),
    }
    return Client(gateway, gateway.open(**settings | options), http)


@asynccontextmanager
async def episode(
    upstream: Upstream | ScriptedServer, *, session: JsonObject | None = None, **options: Any
) -> AsyncIterator[Client]:
    """A gateway before `upstream`, with one session."""
    made = isinstance(upstream, ScriptedServer)
    target = await upstream_of(upstream) if isinstance(upstream, ScriptedServer) else upstream
    try:
        async with Gateway(target, **{"retry": QUICK, **options}) as gateway:
            async with aiohttp.ClientSession() as http:
                yield connected(gateway, http, **(session or {}))
    finally:
        if made:
            await target.close()
