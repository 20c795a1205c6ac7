"""One model call of a harness, however many HTTP requests carry it.

Harnesses retry what they believe lost, with the same body. Sampling again would put a second, orphaned
reply into the records, so a repeated body is matched against the latest call that had it:

- While nobody has been handed that call's reply, a repetition joins the call, or is answered with its
  reply. Unless the first connection still waits and the client says `x-stainless-retry-count: 0`: then
  it means to ask twice.
- Once the reply was handed over, only `x-stainless-retry-count: 1` and up (OpenAI's and Anthropic's
  clients count their retries there) is answered with it again; anything else is a new call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rollout.gateway.upstream import Refused
from rollout.types import Call

__all__ = ["Answer", "Exchange"]


@dataclass(frozen=True)
class Answer:
    """What a call is answered: a record, and the refusal that it holds when it is one."""

    call: Call
    refusal: Refused | None = None


class Exchange:
    """A call in flight, or answered. `forget` is called when everyone who waited for it has gone."""

    def __init__(
        self, task: asyncio.Task[Answer], grace: float, forget: Callable[[Exchange], None]
    ) -> None:
        self.task = task
        self.delivered = False
        self.recorded = False
        self._grace = grace
        self._forget = forget
        self._waiters = 0
        self._timer: asyncio.TimerHandle | None = None

    def repeats(self, headers: Mapping[str, str]) -> bool:
        """Whether another request with this body is this call again."""
        retries = headers.get("x-stainless-retry-count", "")
        if retries.isdigit() and int(retries) > 0:
            return True
        return not self.delivered and not (retries and self._waiters)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Be one of those who wait; when the last one leaves, a retry has `grace` seconds to come."""
        self._waiters += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            yield
        finally:
            self._waiters -= 1
            if not self._waiters and not self.delivered:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._grace, self._abandon)

    async def ready(self, timeout: float | None = None) -> bool:
        """Wait for the answer, at most `timeout` seconds."""
        if not self.task.done():
            await asyncio.wait((self.task,), timeout=timeout)
        return self.task.done()

    def _abandon(self) -> None:
        self.task.cancel()
        self._forget(self)
