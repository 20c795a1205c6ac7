"""The proxy of a model call: recognise, forward, retry, check, record, answer.

A reply is taken whole from the upstream, recorded, and only then played to the harness in its own
dialect. The harness never sees a transient error, because every harness retries in its own way and some
rewrite the conversation when they do: when the upstream is dead for good, the session is asked to stop
and the harness's request stays open until it is.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import NoReturn

import msgspec
from aiohttp import web

from rollout.contract import returned
from rollout.gateway.dialect import Dialect
from rollout.gateway.dialects import DIALECTS
from rollout.gateway.exchange import Answer, Exchange
from rollout.gateway.replies import STREAM, events, gone, rejection, say, whole
from rollout.gateway.retry import Retry
from rollout.gateway.sampling import can_force, force
from rollout.gateway.session import Session, Stop
from rollout.gateway.upstream import ModelReply, ModelRequest, Refused, Transient, Upstream
from rollout.jsontext import repaired
from rollout.pictures import taken_out
from rollout.types import Call, CallKind, JsonObject, Usage

__all__ = ["Asked", "ModelProxy"]

POLICYS_OWN = {
    "context_length_exceeded": "context",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "invalid_prompt": "content_filter",
}
"""Refusals, by code, that the conversation brought about, and the finish that they stand for."""

VOLATILE = frozenset(
    {"stream", "stream_options", "metadata", "client_metadata", "prompt_cache_key"}
)
"""What may differ between a request and its retry: Claude Code falls back to an unstreamed one."""

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(JsonObject).decode


@dataclass(frozen=True)
class Asked:
    """A model call as it arrived."""

    dialect: Dialect
    raw: bytes
    body: JsonObject
    headers: Mapping[str, str]
    started: float
    """Unix time."""
    begin: float
    """Monotonic time."""

    @property
    def streaming(self) -> bool:
        return self.body.get("stream") is True

    def fingerprint(self) -> bytes:
        """What two requests share when one is the repetition of the other."""
        telling = {name: value for name, value in self.body.items() if name not in VOLATILE}
        return sha256(self.dialect.name.encode() + encode(telling)).digest()


@dataclass(frozen=True)
class ModelProxy:
    """Answers the model calls of all sessions. Times in seconds, see `Gateway`."""

    upstream: Upstream
    sampling: JsonObject
    retry: Retry
    keep_alive: float
    grace: float
    max_output: int

    async def handle(
        self, request: web.Request, session: Session, dialect: Dialect
    ) -> web.StreamResponse:
        """Answer one HTTP request that asks for a model call."""
        started, begin = time.time(), time.monotonic()
        if (rejected := self.reject(request, session, dialect)) is not None:
            return rejected
        try:
            raw, body = _read(await session.read(request))
        except web.HTTPRequestEntityTooLarge:
            return rejection(dialect, 413, "the request is too large", "request_too_large")
        except ValueError as error:
            return rejection(dialect, 400, f"not a JSON object: {error}", "invalid_request_error")
        if session.sealed:  # while the body was read
            return gone(dialect)
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(dialect, raw, body, headers, started, begin)
        exchange = self._exchange(session, asked)
        with exchange.waiting():
            try:
                return await self._deliver(request, session, exchange, asked)
            except ConnectionError:
                return web.Response()  # to nobody: the harness has hung up

    def reject(
        self, request: web.Request, session: Session, dialect: Dialect
    ) -> web.Response | None:
        """The answer to a call with a wrong key, or one that comes too late."""
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        keys = (bearer, request.headers.get("x-api-key", ""))
        if not any(hmac.compare_digest(k.encode(), session.key.encode()) for k in keys):
            return rejection(dialect, 401, "wrong API key", "invalid_api_key")
        if session.sealed:
            return gone(dialect)
        return None

    async def count_tokens(self, body: JsonObject, dialect: Dialect) -> int:
        """Tokens of a request's prompt. Raises ValueError for a body that is not of this dialect."""
        chat, _ = dialect.to_chat(body)
        chat |= self.sampling  # which may hold arguments of the chat template
        try:
            return await self.upstream.count_tokens(chat)
        except (Transient, Refused):
            return await Upstream.count_tokens(self.upstream, chat)

    def _exchange(self, session: Session, asked: Asked) -> Exchange:
        """The call that a request belongs to: one that its body has made already, or a new one."""
        key = asked.fingerprint()
        known = session.exchanges.get(key)
        if known is not None and known.repeats(asked.headers):
            return known

        def forget(exchange: Exchange) -> None:
            if session.exchanges.get(key) is exchange:
                del session.exchanges[key]

        task = session.spawn(self._answer(session, asked, session.arrivals))
        session.arrivals += 1
        session.exchanges[key] = exchange = Exchange(task, self.grace, forget)
        return exchange

    async def _answer(self, session: Session, asked: Asked, index: int) -> Answer:
        """Get a call answered, or hold it for ever when the episode has to end."""
        draft = _draft(session, asked, index)
        main, limit = draft.kind == "main", session.task.max_turns
        if main and limit and session.turns >= limit:
            session.end(Stop("policy", f"turn limit: {limit} model calls"))
        if session.stop.done():
            await _for_ever()
        session.turns += main
        try:
            return Answer(await self._forward(session, asked, draft))
        except Refused as refusal:
            session.turns -= main
            finish = POLICYS_OWN.get(refusal.code, "")
            if not finish:
                session.refused = str(refusal)
            return Answer(_refused(asked, draft, refusal, finish), refusal.with_traceback(None))
        except asyncio.CancelledError:
            session.turns -= main
            raise
        except Exception as error:
            session.end(Stop("model", f"answering a model call: {say(error)}"))
            await _for_ever()

    async def _forward(self, session: Session, asked: Asked, draft: Call) -> Call:
        request, finish = self._request(session, asked)
        tries = Tries(session, self.retry)
        begin = time.monotonic()
        with session.model_wait.waiting():
            reply = await tries.ask(self.upstream, request)
        waited = time.monotonic() - begin
        spoken = DIALECTS[request.dialect]
        return msgspec.structs.replace(
            draft,
            reply=encode(finish(reply)),
            seconds=time.monotonic() - asked.begin,
            upstream_seconds=waited,
            tries=tries.count,
            model=reply.model,
            usage=reply.usage if reply.usage != Usage() else spoken.usage(reply.body),
            finish=_finish(reply, spoken),
            prompt_ids=reply.prompt_ids,
            response_ids=reply.response_ids,
            logprobs=reply.logprobs,
            weights=reply.weights,
        )

    def _request(
        self, session: Session, asked: Asked
    ) -> tuple[ModelRequest, Callable[[ModelReply], JsonObject]]:
        """What the upstream is asked, and how its reply becomes one of the harness's dialect."""
        dialect = asked.dialect
        native = dialect.name in self.upstream.dialects and dialect.name != "chat"
        if native and can_force(self.sampling, dialect.name):
            spoken, body = dialect.name, dict(asked.body)
            finish: Callable[[ModelReply], JsonObject] = _body
        else:
            try:
                body, memory = dialect.to_chat(asked.body)
            except Exception as error:
                # Whatever it is, the request is to blame and not the gateway: the harness must be told.
                raise Refused(
                    str(error) if isinstance(error, ValueError) else say(error)
                ) from error
            spoken = "chat"

            def finish(reply: ModelReply) -> JsonObject:
                return dialect.from_chat(reply.body, asked.body, memory)

        force(body, spoken, self.sampling, self.max_output)
        if self.upstream.model:
            body["model"] = self.upstream.model
        request = ModelRequest(
            dialect=spoken,
            body=body,
            task=session.task,
            seed=session.seed,
            locate=session.locate,
        )
        return request, finish

    async def _deliver(
        self, request: web.Request, session: Session, exchange: Exchange, asked: Asked
    ) -> web.StreamResponse:
        """Answer one request with the exchange's reply, whole or as a stream."""
        response: web.StreamResponse | None = None
        if not await exchange.ready(self.keep_alive if asked.streaming else None):
            response = await self._keep_alive(request, exchange, asked)
        if exchange.task.cancelled() or session.sealed:
            return response or gone(asked.dialect)
        answer = exchange.task.result()
        if not exchange.recorded:
            exchange.recorded = True
            session.record(answer.call)
        if response is not None:
            await response.write(events(asked.dialect, asked.body, answer))
        else:
            response = whole(asked.dialect, asked.body, answer)
            await response.prepare(request)
        await response.write_eof()
        if request.transport is not None and not request.transport.is_closing():
            exchange.delivered = True
        return response

    async def _keep_alive(
        self, request: web.Request, exchange: Exchange, asked: Asked
    ) -> web.StreamResponse:
        """Open the stream and keep its idle timer quiet until the answer is there."""
        dialect, body = asked.dialect, asked.body
        response = web.StreamResponse(headers=STREAM)
        await response.prepare(request)
        await response.write(dialect.opening(body) + dialect.keep_alive(body))
        while not await exchange.ready(self.keep_alive):
            await response.write(dialect.keep_alive(body))
        return response


class Tries:
    """Asks until there is a reply, the upstream refuses, or the budget is spent."""

    def __init__(self, session: Session, retry: Retry) -> None:
        self.count = 0
        self._session = session
        self._retry = retry

    async def ask(self, upstream: Upstream, request: ModelRequest) -> ModelReply:
        """The reply. Raises Refused; a spent budget stops the session and never returns."""
        failed_at: float | None = None
        while True:
            self.count += 1
            try:
                return await self._once(upstream, request)
            except Transient as error:
                now = time.monotonic()
                failed_at = now if failed_at is None else failed_at
                pause = self._retry.delay(self.count, now - failed_at, error)
                reason = f"the model server failed {self.count} times: {error}"
            with self._session.fruitless_wait.waiting():
                if pause is None:
                    self._session.end(Stop("model", reason))
                    await _for_ever()
                else:
                    await asyncio.sleep(pause)

    async def _once(self, upstream: Upstream, request: ModelRequest) -> ModelReply:
        fruitless = self._session.fruitless_wait
        wait = fruitless.begin()
        try:
            reply = returned(await upstream.complete(request), ModelReply, "complete()")
        except Refused:
            fruitless.drop(wait)
            raise
        except BaseException:
            fruitless.end(wait)
            raise
        fruitless.drop(wait)
        return reply


def _read(raw: bytes) -> tuple[bytes, JsonObject]:
    """A request for the records, and its value. Raises ValueError where it is no JSON object."""
    try:
        return raw, decode(raw)
    except (ValueError, RecursionError):
        raw = repaired(raw)
        return raw, decode(raw)


def _draft(session: Session, asked: Asked, index: int) -> Call:
    """The record of a call as far as it is known on arrival."""
    kind: CallKind = "main"
    agent = ""
    try:
        kind, agent = session.classify(asked.headers, asked.body)
    except Exception as error:
        session.end(Stop("harness", f"classifying a model call: {say(error)}"))
    request, images = taken_out(asked.raw)
    new = [len(image.data) for digest, image in images.items() if digest not in session.images]
    session.keep(len(request) + sum(new))
    session.images |= images
    return Call(
        index=index,
        dialect=asked.dialect.name,
        kind=kind,
        request=request,
        reply=b"",
        started=asked.started,
        agent=agent,
    )


def _finish(reply: ModelReply, spoken: Dialect) -> str:
    finish = reply.finish or spoken.finish(reply.body)
    return "empty" if finish == "stop" and spoken.is_empty(reply.body) else finish


def _refused(asked: Asked, draft: Call, refusal: Refused, finish: str) -> Call:
    error = asked.dialect.error(refusal.status, str(refusal), refusal.code)
    return msgspec.structs.replace(
        draft,
        reply=encode(error),
        status=refusal.status,
        finish=finish,
        seconds=time.monotonic() - asked.begin,
    )


def _body(reply: ModelReply) -> JsonObject:
    return reply.body


async def _for_ever() -> NoReturn:
    """Wait until cancelled, as `Session.seal` does."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody resolves this future")
