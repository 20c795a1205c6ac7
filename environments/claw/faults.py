"""Fault injection: the errors of real services, at moments that the task and the seed decide.

faults:
  - {tool: gmail_send_message, kind: rate_limit, times: 2}          # its first two calls
  - {service: crm, kind: server_error, rate: 0.3}                   # three in ten, by the seed
  - {tool: "*", kind: delay, seconds: 1, after: 4}                  # the fifth call of any tool
"""

from __future__ import annotations

from random import Random
from typing import Any, Literal, TypeAlias

from rollout.types import JsonObject, Record, ToolReply

__all__ = ["Fault", "FaultKind", "FaultPlan", "emptied"]

FaultKind: TypeAlias = Literal[
    "rate_limit", "server_error", "permission_denied", "delay", "empty", "lost_write"
]

REFUSALS: dict[FaultKind, ToolReply] = {
    "rate_limit": ToolReply(
        status=429,
        body={
            "error": "rate_limit_exceeded",
            "message": "Too many requests. Please retry after a short delay.",
            "retry_after_seconds": 2,
        },
    ),
    "server_error": ToolReply(
        status=500,
        body={
            "error": "internal_server_error",
            "message": "An unexpected error occurred. Please try again.",
        },
    ),
    "permission_denied": ToolReply(
        status=403,
        body={
            "error": "permission_denied",
            "message": "You do not have permission to perform this action.",
        },
    ),
}
"""The kinds that answer in the service's place."""

MIX: dict[FaultKind, float] = {"rate_limit": 0.35, "server_error": 0.35, "delay": 0.30}
"""What an error rate is made of."""


class Fault(Record, frozen=True, kw_only=True):
    """One rule of a task's `faults`."""

    kind: FaultKind
    tool: str = ""
    """The tool that it is about, or `*` for all."""
    service: str = ""
    """Or the service that it is about."""
    times: int = 0
    """How many calls it hits at most; 0 is no limit."""
    rate: float = 1.0
    """The probability that it hits a call."""
    after: int = 0
    """How many matching calls are spared first."""
    seconds: float = 2.0
    """Length of a `delay`."""


class FaultPlan:
    """The faults of one world: which call is hit by which, and what has been injected.

    `error_rate` is the probability that a call fails although no fault of the task's hits it, as in
    claw-eval's own middleware (mock_services/_base.py, ERROR_RATE): 35 % rate limits, 35 % server errors,
    30 % delays of 2 to 4 s. Theirs has no seed; ours does.
    """

    def __init__(self, faults: tuple[Fault, ...], seed: int, error_rate: float = 0.0) -> None:
        self.injected: list[JsonObject] = []
        self._pending = [_Pending(fault, f"{seed}:{n}") for n, fault in enumerate(faults)]
        self._rate = error_rate
        self._random = Random(f"{seed}:error rate")

    def next(self, tool: str, service: str) -> Fault | None:
        """The fault that hits this call, if any. Later faults do not see a call that one takes."""
        for pending in self._pending:
            if pending.hits(tool, service):
                return pending.fault
        return self._random_error(tool) if self._rate else None

    def _random_error(self, tool: str) -> Fault | None:
        if self._random.random() >= self._rate:
            return None
        kind = self._random.choices(list(MIX), list(MIX.values()))[0]
        return Fault(kind=kind, tool=tool, seconds=self._random.uniform(2.0, 4.0))

    def note(self, fault: Fault, call: int, tool: str, service: str, now: str) -> None:
        """List an injected fault; `call` counts the world's calls from 0."""
        self.injected.append(
            {"kind": fault.kind, "call": call, "tool": tool, "service": service, "timestamp": now}
        )


class _Pending:
    """A fault and what it has seen so far. Its random numbers are its own, so rules do not interact."""

    def __init__(self, fault: Fault, seed: str) -> None:
        self.fault = fault
        self._random = Random(seed)
        self._seen = self._hit = 0

    def hits(self, tool: str, service: str) -> bool:
        fault = self.fault
        if not (fault.tool in ("*", tool) or (fault.service and fault.service in ("*", service))):
            return False
        self._seen += 1
        if self._seen <= fault.after or (fault.times and self._hit >= fault.times):
            return False
        hit = self._random.random() < fault.rate
        self._hit += hit
        return hit


def emptied(reply: Any) -> Any:
    """A list reply with nothing in its lists; `{}` for any other."""
    if not isinstance(reply, dict) or "total" not in reply:
        return {}
    return {
        key: [] if isinstance(value, list) else 0 if key == "total" else value
        for key, value in reply.items()
    }
