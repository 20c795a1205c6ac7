"""What answers a world's tool calls: a service of our own in this process, or an original server."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

from environments.claw.service import Service
from rollout.types import JsonObject, ToolReply

__all__ = ["Backend", "InProcess"]


class Backend(ABC):
    """One running service of one world."""

    prefix: str
    """First segment of its URL paths."""

    @abstractmethod
    async def send(self, method: str, path: str, body: Any) -> ToolReply:
        """The reply to a request; never raises for a bad one."""

    @abstractmethod
    async def audit(self) -> JsonObject:
        """Everything that was done here."""

    async def rehearse(self, method: str, path: str, body: Any) -> ToolReply:
        """The reply that `send` would give, with no effect."""
        raise NotImplementedError(f"{type(self).__name__} can't answer without effect")

    def remarks(self) -> list[str]:
        """What a reader of the run should know of it."""
        return []


class InProcess(Backend):
    """A service of our own."""

    def __init__(self, service: Service) -> None:
        self.prefix = service.prefix
        self._service = service

    async def send(self, method: str, path: str, body: Any) -> ToolReply:
        return _answer(self._service, method, path, body)

    async def audit(self) -> JsonObject:
        return self._service.audit()

    async def rehearse(self, method: str, path: str, body: Any) -> ToolReply:
        return _answer(copy.deepcopy(self._service), method, path, body)

    def remarks(self) -> list[str]:
        return list(self._service.remarks)


def _answer(service: Service, method: str, path: str, body: Any) -> ToolReply:
    if method != "POST" and path in service.routes:
        return ToolReply(status=405, body={"detail": "Method Not Allowed"})
    return service.handle(path, body)
