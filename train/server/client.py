"""The client of a rollout server, a page long: copy it into a trainer, or import it.

async with RolloutClient("http://127.0.0.1:8700") as client:
    await client.submit("B01_corrected_delivery_change", n=8)
    async for group in client.groups():
        train_on(group["rows"])
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any, Self

import aiohttp
import msgspec

__all__ = ["RolloutClient", "RolloutServerError"]

MESSAGEPACK = "application/msgpack"
POLL = 30.0
"""Seconds that one request for finished groups waits."""


class RolloutServerError(Exception):
    """The server understood a request, and refuses it."""


class RolloutClient:
    """Asks for groups and takes them. Connection errors are retried: ids make that safe."""

    def __init__(self, url: str, token: str = "", *, tries: int = 8, pause: float = 1.0) -> None:
        self._url, self._tries, self._pause = url.rstrip("/"), tries, pause
        headers = {"Accept": MESSAGEPACK}
        self._headers = headers | ({"Authorization": f"Bearer {token}"} if token else {})
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.close()

    async def info(self) -> dict[str, Any]:
        """Tasks, harnesses and rules."""
        return await self._ask("GET", "/v1/info")

    async def submit(self, task_id: str, n: int, *, id: str = "", seed: int | None = None) -> str:
        """Ask for a group; its id. Waits while the server's queue is full."""
        name = id or secrets.token_hex(8)
        body: dict[str, Any] = {"id": name, "task_id": task_id, "n": n}
        await self._ask("POST", "/v1/groups", body if seed is None else body | {"seed": seed})
        return name

    async def groups(self, most: int = 1) -> AsyncIterator[dict[str, Any]]:
        """Finished groups, for ever. Each is acknowledged when the next one is asked for."""
        while True:
            found = await self._ask("GET", f"/v1/groups?max={most}&wait={POLL:g}")
            for group in found["groups"]:
                yield group
                await self._ask("POST", f"/v1/groups/{group['id']}/ack")

    async def cancel(self, id: str) -> None:
        """Give up a group."""
        await self._ask("DELETE", f"/v1/groups/{id}")

    async def pause(self) -> None:
        """Hold model calls back, while weights are replaced."""
        await self._ask("POST", "/v1/pause")

    async def resume(self) -> None:
        """Let them go."""
        await self._ask("POST", "/v1/resume")

    async def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        assert self._http is not None, "use it in `async with`"
        tried = 0
        while True:
            try:
                async with self._http.request(method, self._url + path, json=body) as reply:
                    data = await reply.read()
                    if reply.status == 429:
                        await asyncio.sleep(float(reply.headers.get("Retry-After", "1")))
                        continue
            except (aiohttp.ClientError, TimeoutError):
                tried += 1
                if tried >= self._tries:
                    raise
                await asyncio.sleep(min(30.0, self._pause * 2 ** (tried - 1)))
                continue
            if reply.content_type != MESSAGEPACK:  # not the server: a proxy, or a bug
                raise RolloutServerError(f"{method} {path}: {reply.status} {reply.reason}")
            told: dict[str, Any] = msgspec.msgpack.decode(data)
            if reply.status >= 400:
                raise RolloutServerError(f"{method} {path}: {told.get('error')}")
            return told
