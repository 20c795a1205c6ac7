"""One episode as the gateway sees it: who may call, and what has been called."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from aiohttp import web

from rollout.contract import returned
from rollout.errors import EnvironmentFault, described
from rollout.gateway.meter import Meter
from rollout.jsontext import plain
from rollout.types import (
    Call,
    CallKind,
    Image,
    JsonObject,
    Task,
    ToolCall,
    ToolReply,
    ToolSurface,
    Usage,
)

if TYPE_CHECKING:
    from rollout.gateway.exchange import Exchange

__all__ = ["Classify", "Dispatch", "Locate", "Session", "Stop"]

T = TypeVar("T")

Dispatch = Callable[[str, Any], Awaitable[ToolReply]]
"""`World.call`."""

Locate = Callable[[str], Awaitable[JsonObject]]
"""`World.locate`."""

Reply = Callable[[str], Awaitable[str | None]]
"""`World.reply`."""

Classify = Callable[[Mapping[str, str], JsonObject], tuple[CallKind, str]]
"""`Harness.classify`."""

DEAD_ENDS = {
    "context": "the conversation no longer fits in the context window",
    "length": "the last reply was cut at its token limit",
    "content_filter": "the model refused to go on",
    "empty": "the last reply was empty",
}
"""Ends of a model call, by `Call.finish`, at which a harness may fail without any fault of its own."""

KEPT = 2 * 2**30
"""Bytes of requests and arguments that one episode may leave in the records, which are held in memory."""

READERS = 8
"""Request bodies of one episode that are read at a time; the gateway bounds the size of each."""

SEALED = ToolReply(status=410, body={"error": "the episode is over"})


@dataclass(frozen=True)
class Stop:
    """Why an episode has to be ended from outside."""

    cause: Literal["model", "policy", "environment", "harness"]
    reason: str


class Session:
    """The records of one episode, and the way to its world. Made by `Gateway.open`."""

    def __init__(
        self,
        *,
        task: Task,
        seed: int,
        surface: ToolSurface,
        dispatch: Dispatch,
        classify: Classify,
        locate: Locate | None = None,
    ) -> None:
        self.token = secrets.token_urlsafe(18)
        """In the URL path of everything that this episode may reach."""
        self.key = f"sk-{secrets.token_urlsafe(18)}"
        """What model calls must carry as their API key."""
        self.task = task
        self.seed = seed
        self.surface = surface
        self.classify = classify
        self.locate = locate
        self.calls: list[Call] = []
        """Answered model calls; after `seal()` in the order in which they arrived."""
        self.tool_calls: list[ToolCall] = []
        """Answered tool calls, in the order in which the world answered them."""
        self.images: dict[str, Image] = {}
        """Every picture that was shown or sent, by its digest."""
        self.stop: asyncio.Future[Stop] = asyncio.get_running_loop().create_future()
        """Resolved when the harness can't be let go on; whoever runs it must end it."""
        self.fault: EnvironmentFault | None = None
        """The first exception that the world raised: our fault, never the policy's."""
        self.refused = ""
        """The last call that the upstream refused for another reason than its length."""
        self.tools_listed = False
        """Whether the harness has asked over MCP which tools there are."""
        self.usage = Usage()
        self.sealed = False
        self.kept = 0
        """Bytes of requests and arguments in the records so far."""
        self.arrivals = 0
        """Model calls that have arrived, answered or not."""
        self.turns = 0
        """The agent's own model calls, answered or in flight: what `Task.max_turns` limits."""
        self.exchanges: dict[bytes, Exchange] = {}
        """The latest call of each request body, by hash: where a harness's retries are recognised."""
        self.model_wait, self.fruitless_wait, self.tool_wait = Meter(), Meter(), Meter()
        self.world_hangs = Meter()
        self._dispatch = dispatch
        self._running: set[asyncio.Task[Any]] = set()
        self._reading = asyncio.Semaphore(READERS)

    @property
    def model_seconds(self) -> float:
        """Time with at least one model call waiting for the upstream."""
        return self.model_wait.seconds

    @property
    def fruitless_seconds(self) -> float:
        """The part of it that brought no reply: failed tries, pauses before the next, open calls."""
        return self.fruitless_wait.seconds

    @property
    def tool_seconds(self) -> float:
        """Time with at least one tool call waiting for the world."""
        return self.tool_wait.seconds

    @property
    def hanging_seconds(self) -> float:
        """Time with a tool call, or a question to the user, that the world never answered."""
        return self.world_hangs.seconds

    @property
    def without_tools(self) -> bool:
        """Whether the harness never asked for the tools that only MCP would have told it."""
        return self.surface == "mcp" and bool(self.task.tools) and not self.tools_listed

    @property
    def dead_end(self) -> str:
        """What the agent's last answered call ran into, the policy's own doing; empty for nothing."""
        own = (call for call in reversed(self.calls) if call.kind in ("main", "compaction"))
        last = next(own, None)
        return DEAD_ENDS.get(last.finish, "") if last else ""

    def end(self, stop: Stop) -> None:
        """Ask for the episode to be ended; the first reason counts."""
        if not self.stop.done():
            self.stop.set_result(stop)

    async def read(self, request: web.Request) -> bytes:
        """A request's body. An agent that sends many large ones at once waits for itself."""
        async with self._reading:
            return await request.read()

    def keep(self, size: int) -> None:
        """Count what goes into the records; whoever fills the host's memory with it is ended."""
        self.kept += size
        if self.kept > KEPT:
            self.end(Stop("policy", f"its calls hold more than {KEPT >> 20} MiB"))

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run something that must not outlive the session, whatever becomes of the connection."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def record(self, call: Call) -> None:
        """Add an answered model call."""
        self.calls.append(call)
        self.usage += call.usage

    async def call_tool(
        self, name: str, arguments: Any, surface: ToolSurface | None = None
    ) -> ToolReply:
        """Have the world answer a tool call, and log it under its bare name.

        An exception in the world is answered with status 500, kept as `fault`, and ends the episode.
        A harness that hangs up does not undo its call: it runs to its end and is logged.
        """
        if self.sealed:
            return SEALED
        work = self.spawn(self._answer_tool(name, arguments, surface or self.surface))
        await asyncio.wait({work})
        return SEALED if work.cancelled() else work.result()

    async def ask_user(self, reply: Reply, answer: str) -> str | None:
        """What the user says to an answer; None when the conversation, or the episode, is over."""

        async def asking() -> str | None:
            with self.world_hangs.endless():
                return await reply(answer)

        work = self.spawn(asking())
        await asyncio.wait({work})
        return None if work.cancelled() else work.result()

    async def _answer_tool(self, name: str, arguments: Any, surface: ToolSurface) -> ToolReply:
        started, begin = time.time(), time.perf_counter()
        asked: Any = None
        try:
            sent = plain(arguments)
            self.keep(len(sent))
        except ValueError as error:
            reply = ToolReply(status=400, body={"error": f"the arguments are {error}"})
        else:
            # Two copies: worlds hand out, and change, parts of what they are given.
            asked = msgspec.json.decode(sent)
            reply = await self._dispatched(name, msgspec.json.decode(sent))
        self.images |= {image.digest: image for image in reply.images}
        self.tool_calls.append(
            ToolCall(
                index=len(self.tool_calls),
                name=name,
                arguments=asked,
                status=reply.status,
                reply=reply.body,
                surface=surface,
                started=started,
                seconds=time.perf_counter() - begin,
                images=tuple(image.digest for image in reply.images),
            )
        )
        return reply

    async def _dispatched(self, name: str, arguments: Any) -> ToolReply:
        try:
            with self.tool_wait.waiting(), self.world_hangs.endless():
                reply = returned(await self._dispatch(name, arguments), ToolReply, "call()")
            body = msgspec.json.decode(plain(reply.body))
            return msgspec.structs.replace(reply, body=body)
        except Exception as error:
            return self._faulted(name, error)

    def _faulted(self, name: str, error: Exception) -> ToolReply:
        fault = EnvironmentFault(f"tool {name}: {described(error)}")
        fault.__cause__ = error
        self.fault = self.fault or fault
        self.end(Stop("environment", str(fault)))
        return ToolReply(status=500, body={"error": "internal error of the tool"})

    def seal(self) -> None:
        """Close the records: calls in flight are cancelled, later ones refused, none recorded."""
        if self.sealed:
            return
        self.sealed = True
        now = time.monotonic()
        for meter in (self.model_wait, self.fruitless_wait, self.tool_wait, self.world_hangs):
            meter.freeze(now)
        for task in tuple(self._running):
            task.cancel()
        self.exchanges.clear()
        self.calls.sort(key=lambda call: call.index)
        for index, call in enumerate(self.calls):
            if call.index != index:
                self.calls[index] = msgspec.structs.replace(call, index=index)
