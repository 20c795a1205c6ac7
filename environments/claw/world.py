"""One attempt's world: the task's services, a clock and the faults. No port, no process."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

from environments.claw.clock import Clock, parse_time
from environments.claw.faults import REFUSALS, Fault, FaultPlan, emptied
from environments.claw.service import Service, service_class
from environments.claw.task import ClawTask
from rollout.environment import Surface, World
from rollout.sandbox import Sandbox
from rollout.types import JsonObject, ToolReply

__all__ = ["ClawWorld"]


class ClawWorld(World):
    """A task's services, in a state that is this attempt's own."""

    def __init__(self, task: ClawTask, seed: int) -> None:
        self.surface = Surface(
            prompt=task.prompt,
            tools=task.tools,
            files={name: Path(path).read_bytes() for name, path in task.files.items()},
        )
        self._endpoints = task.endpoints
        self._clock = Clock(parse_time(task.clock) if task.clock else None)
        self._services: dict[str, Service] = {
            spec.name: service_class(spec.kind)(spec.env, self._clock) for spec in task.services
        }
        self._by_prefix = {service.prefix: name for name, service in self._services.items()}
        self._faults = FaultPlan(task.faults, seed)
        self._calls = 0

    async def call(self, name: str, arguments: Any) -> ToolReply:
        """Send the arguments, as they are, to the endpoint that the task maps the tool to."""
        if name not in self._endpoints:
            return await super().call(name, arguments)
        call, self._calls = self._calls, self._calls + 1
        self._clock.tick()
        endpoint = self._endpoints[name]
        service = self._by_prefix.get(endpoint.prefix, "")
        fault = self._faults.next(name, service)
        if fault is None:
            return self._answer(self._services.get(service), name, arguments)
        self._faults.note(fault, call, name, service, self._clock.stamp())
        return await self._fail(fault, self._services.get(service), name, arguments)

    def _answer(self, service: Service | None, name: str, arguments: Any) -> ToolReply:
        endpoint = self._endpoints[name]
        if service is None:
            return ToolReply(status=404, body={"detail": "Not Found"})
        if endpoint.method != "POST" and endpoint.path in service.routes:
            return ToolReply(status=405, body={"detail": "Method Not Allowed"})
        return service.handle(endpoint.path, arguments)

    async def _fail(
        self, fault: Fault, service: Service | None, name: str, arguments: Any
    ) -> ToolReply:
        if fault.kind in REFUSALS:
            return copy.deepcopy(REFUSALS[fault.kind])
        if fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
            return self._answer(service, name, arguments)
        # Answered by a copy that is thrown away: neither the state nor the audit log knows of it.
        reply = self._answer(copy.deepcopy(service), name, arguments)
        if fault.kind == "empty" and reply.ok:
            return ToolReply(status=reply.status, body=emptied(reply.body))
        return reply

    async def snapshot(self, sandbox: Sandbox) -> JsonObject:
        """The audit log of each service, the time, and the faults that were injected."""
        return {
            "audit": {name: service.audit() for name, service in self._services.items()},
            "now": self._clock.stamp(),
            "faults": list(self._faults.injected),
        }
