"""One attempt's world: the task's services, a clock, the faults, and the user. No port, no process."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from environments.claw.backend import Backend, InProcess
from environments.claw.clock import Clock, parse_time
from environments.claw.faults import REFUSALS, Fault, FaultPlan, emptied
from environments.claw.original.inputs import attached
from environments.claw.service import service_class
from environments.claw.snapshot import take_snapshot
from environments.claw.task import ClawTask, ServiceSpec
from environments.claw.user import SimulatedUser
from rollout.environment import Surface, World
from rollout.sandbox import Sandbox
from rollout.types import JsonObject, ToolReply

__all__ = ["ClawWorld"]

NO_BACKENDS: Mapping[str, Backend] = {}


class ClawWorld(World):
    """A task's services, in a state that is this attempt's own."""

    def __init__(
        self,
        task: ClawTask,
        seed: int,
        *,
        backends: Mapping[str, Backend] = NO_BACKENDS,
        error_rate: float = 0.0,
        user: SimulatedUser | None = None,
    ) -> None:
        """Services that are not among `backends` are our own, in this process."""
        self.surface = _surface(task)
        self._task = task
        self._user = user
        self._clock = Clock(parse_time(task.clock) if task.clock else None)
        self._services: dict[str, Backend] = {
            spec.name: backends.get(spec.name) or self._in_process(spec, seed)
            for spec in task.services
        }
        self._by_prefix = {service.prefix: name for name, service in self._services.items()}
        self._faults = FaultPlan(task.faults, seed, error_rate)
        self._calls = 0

    def _in_process(self, spec: ServiceSpec, seed: int) -> Backend:
        env = {**spec.env, "SEED": str(seed)}
        return InProcess(service_class(spec.kind)(env, self._clock))

    async def call(self, name: str, arguments: Any) -> ToolReply:
        """Send the arguments, as they are, to the endpoint that the task maps the tool to."""
        if name not in self._task.endpoints:
            return await super().call(name, arguments)
        call, self._calls = self._calls, self._calls + 1
        self._clock.tick()
        service = self._by_prefix.get(self._task.endpoints[name].prefix, "")
        fault = self._faults.next(name, service)
        if fault is None:
            return await self._answer(name, arguments)
        self._faults.note(fault, call, name, service, self._clock.stamp())
        return await self._fail(fault, name, arguments)

    async def _answer(self, name: str, arguments: Any, *, rehearsed: bool = False) -> ToolReply:
        endpoint = self._task.endpoints[name]
        service = self._services.get(self._by_prefix.get(endpoint.prefix, ""))
        if service is None:
            return ToolReply(status=404, body={"detail": "Not Found"})
        send = service.rehearse if rehearsed else service.send
        return await send(endpoint.method, endpoint.path, arguments)

    async def _fail(self, fault: Fault, name: str, arguments: Any) -> ToolReply:
        if fault.kind in REFUSALS:
            return copy.deepcopy(REFUSALS[fault.kind])
        if fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
            return await self._answer(name, arguments)
        # Neither the state nor the audit log knows of such a call.
        reply = await self._answer(name, arguments, rehearsed=True)
        if fault.kind == "empty" and reply.ok:
            return ToolReply(status=reply.status, body=emptied(reply.body))
        return reply

    async def reply(self, answer: str) -> str | None:
        """What the task's simulated user says to the agent's answer."""
        return await self._user.reply(answer) if self._user else None

    async def snapshot(self, sandbox: Sandbox) -> JsonObject:
        """The audit log of each service, the time, the faults, and what graders asked to know."""
        left: JsonObject = {
            "audit": {name: await service.audit() for name, service in self._services.items()},
            "now": self._clock.stamp(),
            "faults": list(self._faults.injected),
        }
        remarks = [remark for service in self._services.values() for remark in service.remarks()]
        if remarks:
            left["remarks"] = remarks
        if self._task.snapshot:
            left["env_snapshot"] = await take_snapshot(self._task.snapshot, sandbox)
        if self._user:
            left["user_agent"] = self._user.record()
        return left


def _surface(task: ClawTask) -> Surface:
    prompt = "\n\n".join([task.prompt, *attached(task.documents)])
    for name in task.images:
        prompt += f"\n\n[attached image, in your workspace: {name}]"
    if task.user and task.user.suffix:
        prompt += f"\n\n{task.user.suffix}"
    return Surface(
        prompt=prompt,
        tools=task.tools,
        files={name: Path(path).read_bytes() for name, path in task.files.items()},
        user=task.user is not None,
    )
