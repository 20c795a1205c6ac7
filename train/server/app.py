"""The HTTP side of a rollout server: see docs/rollout-server.md for the schema."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from rollout.errors import RolloutError, UsageError
from rollout.text import one_line
from rollout.types import JsonObject, Record
from train.files import plain
from train.gate import Gate
from train.server.groups import DeliveryRules, GroupWorker, payload
from train.server.queue import NAME, Conflict, Entry, Full, Order

__all__ = ["SCHEMA", "application"]

SCHEMA = 1
"""Version of the schema; it rises when a field changes its meaning or goes."""

RETRY_AFTER = 2
"""Seconds after which a full queue may be tried again."""

LONGEST_WAIT = 60.0
"""Seconds that a request for finished groups may wait."""

MOST_ATTEMPTS = 1024
MESSAGEPACK = "application/msgpack"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Wanted(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/groups`."""

    task_id: str
    n: int
    id: str = ""
    seed: int | None = None


class _Service:
    def __init__(
        self, worker: GroupWorker, gate: Gate, rules: DeliveryRules, about: JsonObject
    ) -> None:
        self._worker, self._gate, self._rules, self._about = worker, gate, rules, about
        self._queue = worker.queue

    async def info(self, request: web.Request) -> web.Response:
        now: JsonObject = {"groups": self._queue.counts(), "paused": self._gate.closed}
        return _answer(request, self._about | now)

    async def submit(self, request: web.Request) -> web.Response:
        order = self._order(await request.read())
        new = order.id not in self._queue.entries
        try:
            entry = self._queue.submit(order)
        except Full as full:
            headers = {"Retry-After": str(RETRY_AFTER)}
            return _answer(request, {"error": str(full)}, 429, headers)
        except Conflict as conflict:
            return _answer(request, {"error": str(conflict)}, 409)
        if new:
            await self._worker.notify()
        return _answer(request, _status(entry), 202)

    def _order(self, body: bytes) -> Order:
        try:
            wanted = msgspec.json.decode(body, type=_Wanted)
        except msgspec.MsgspecError as error:
            raise _Bad(f"the body: {error}") from None
        if not 1 <= wanted.n <= MOST_ATTEMPTS:
            raise _Bad(f"n: {wanted.n} is not from 1 to {MOST_ATTEMPTS}")
        if wanted.id and not NAME.fullmatch(wanted.id):
            raise _Bad(f"id: {wanted.id!r} is not 1 to 100 letters, digits, dots, dashes")
        if wanted.seed is not None and not -(2**63) <= wanted.seed < 2**63:
            raise _Bad(f"seed: {wanted.seed} has more than 64 bits")
        name = wanted.id or secrets.token_hex(8)
        seed = zlib.crc32(name.encode()) if wanted.seed is None else wanted.seed
        order = Order(id=name, task_id=wanted.task_id, n=wanted.n, seed=seed)
        try:
            self._worker.harness(order)
        except UsageError as error:
            raise _Bad(f"task_id: {error}") from None
        return order

    async def collect(self, request: web.Request) -> web.Response:
        most = _number(request, "max", 1, 1, 1000)
        wait = _number(request, "wait", 0.0, 0.0, LONGEST_WAIT)
        entries = await self._leased(request, int(most), wait)
        return _answer(request, {"groups": [await self._payload(entry) for entry in entries]})

    async def _leased(self, request: web.Request, most: int, wait: float) -> list[Entry]:
        """What is handed out now; nothing to a client that is gone: nobody else would get it for long."""
        end = asyncio.get_running_loop().time() + wait
        while True:
            async with self._worker.changed:
                if request.transport is None or request.transport.is_closing():
                    return []
                if entries := self._queue.lease(most):
                    return entries
                left = end - asyncio.get_running_loop().time()
                if left <= 0:
                    return []
                # Woken by a group that ends, or when a lease does.
                try:
                    async with asyncio.timeout(min(left, self._queue.expiry())):
                        await self._worker.changed.wait()
                except TimeoutError:
                    continue

    async def _payload(self, entry: Entry) -> JsonObject:
        """The group; failed, where its records are damaged or its task is gone."""
        order = entry.order
        try:
            harness = self._worker.harness(order).spec.name
            return await asyncio.to_thread(
                payload, entry, self._worker.place(order), harness, self._rules
            )
        except UsageError as error:
            nothing: JsonObject = {"harness": "", "episodes": [], "rows": []}
            return _status(entry) | {"state": "failed", "reason": str(error)} | nothing

    async def look(self, request: web.Request) -> web.Response:
        entry = self._entry(request)
        ready = entry.state in ("finished", "failed")
        return _answer(request, await self._payload(entry) if ready else _status(entry))

    async def ack(self, request: web.Request) -> web.Response:
        entry = self._entry(request)
        fresh = entry.state != "acked"
        try:
            self._queue.ack(entry)
        except Conflict as conflict:
            return _answer(request, {"error": str(conflict)}, 409)
        if fresh:
            await self._worker.gone(entry)
        return _answer(request, _status(entry))

    async def cancel(self, request: web.Request) -> web.Response:
        entry = self._entry(request)
        await self._worker.cancel(entry)
        return _answer(request, _status(entry))

    async def pause(self, request: web.Request) -> web.Response:
        self._gate.close()
        return _answer(request, {"paused": True})

    async def resume(self, request: web.Request) -> web.Response:
        self._gate.open()
        return _answer(request, {"paused": False})

    def _entry(self, request: web.Request) -> Entry:
        name = request.match_info["id"]
        if name not in self._queue.entries:
            raise web.HTTPNotFound(text=f"no group {name!r}")
        return self._queue.entries[name]


class _Bad(web.HTTPBadRequest):
    def __init__(self, text: str) -> None:
        super().__init__(text=text)


def application(
    worker: GroupWorker, gate: Gate, rules: DeliveryRules, about: JsonObject, token: str = ""
) -> web.Application:
    """The server's routes. `token`, where there is one, must come as a bearer token."""
    service = _Service(worker, gate, rules, about)
    app = web.Application(middlewares=[_guard(token), _as_json])
    app.add_routes(
        [
            web.get("/v1/info", service.info),
            web.post("/v1/groups", service.submit),
            web.get("/v1/groups", service.collect),
            web.get("/v1/groups/{id}", service.look),
            web.delete("/v1/groups/{id}", service.cancel),
            web.post("/v1/groups/{id}/ack", service.ack),
            web.post("/v1/pause", service.pause),
            web.post("/v1/resume", service.resume),
        ]
    )
    return app


def _guard(token: str) -> Any:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token and not hmac.compare_digest(sent.encode(), token.encode()):
            return _answer(request, {"error": "the bearer token is missing or wrong"}, 401)
        return await handler(request)

    return guard


@web.middleware
async def _as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors in the same form as everything else."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _answer(request, {"error": error.text or error.reason}, error.status)
    except (RolloutError, OSError) as error:  # a damaged record, a full disk
        return _answer(request, {"error": one_line(str(error))}, 500)


def _status(entry: Entry) -> JsonObject:
    return {
        **msgspec.to_builtins(entry.order),
        "state": entry.state,
        "reason": entry.reason,
        "delivery": entry.deliveries,
    }


def _answer(
    request: web.Request, body: JsonObject, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    packed = MESSAGEPACK in request.headers.get("Accept", "")
    encode = msgspec.msgpack.encode if packed else msgspec.json.encode
    return web.Response(
        body=encode(body, enc_hook=plain),
        status=status,
        headers=headers,
        content_type=MESSAGEPACK if packed else "application/json",
    )


def _number(request: web.Request, name: str, default: float, low: float, high: float) -> float:
    text = request.query.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise _Bad(f"{name}: {text!r} is not a number from {low:g} to {high:g}")
    return value
