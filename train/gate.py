"""Holding the policy's calls back, while a trainer replaces its weights for instance."""

from __future__ import annotations

import asyncio

from rollout.gateway.meter import Meter
from rollout.gateway.upstream import ModelReply, ModelRequest, Upstream
from rollout.types import JsonObject, Task

__all__ = ["Gate", "Gated"]


class Gate:
    """While it is closed calls wait in front of it, and no attempt's clock runs."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._meter = Meter()
        self._since: float | None = None

    @property
    def closed(self) -> bool:
        """Whether calls are held back."""
        return self._since is not None

    def close(self) -> None:
        """Hold calls back from now on. Closing twice is harmless."""
        if self._since is None:
            self._open.clear()
            self._since = self._meter.begin()

    def open(self) -> None:
        """Let them go."""
        if self._since is not None:
            self._meter.end(self._since)
            self._since = None
            self._open.set()

    async def wait(self) -> None:
        """Return when it is open."""
        await self._open.wait()

    def seconds(self) -> float:
        """For how long it has been closed so far, all in all: `Setup.paused`."""
        return self._meter.seconds


class Gated(Upstream):
    """A model server behind a gate."""

    def __init__(self, upstream: Upstream, gate: Gate) -> None:
        self._upstream = upstream
        self._gate = gate
        self._checked = False
        self._take_over()

    async def check(self) -> None:
        """Check what is behind it, once: several gateways may share it."""
        if not self._checked:
            await self._upstream.check()
            self._checked = True
            self._take_over()

    def unfit(self, task: Task) -> str:
        return self._upstream.unfit(task)

    async def complete(self, request: ModelRequest) -> ModelReply:
        await self._gate.wait()
        return await self._upstream.complete(request)

    async def count_tokens(self, body: JsonObject) -> int:
        return await self._upstream.count_tokens(body)

    async def close(self) -> None:
        await self._upstream.close()

    def fingerprint(self) -> JsonObject:
        return self._upstream.fingerprint()

    def _take_over(self) -> None:
        """What the upstream knows of its model, some of it only after its check."""
        self.model, self.label = self._upstream.model, self._upstream.label
        self.context_window = self._upstream.context_window
        self.dialects = self._upstream.dialects
