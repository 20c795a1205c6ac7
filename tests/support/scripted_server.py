"""A model server that does as it is told: for tests of everything that talks to one.

    async with ScriptedServer() as server:
        server.queue(text("hello"), Fail(500), Drop(), text("again"))
        ... talk to server.url ...
        server.requests[0].body

Replies are used up in order; when none are left, `server.default` answers for ever.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

__all__ = [
    "Drop",
    "Fail",
    "Garbage",
    "Reply",
    "Request",
    "ScriptedServer",
    "Stall",
    "text",
    "tool_call",
]


@dataclass(frozen=True)
class Reply:
    """A JSON body, in whatever dialect was asked."""

    body: Mapping[str, Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fail:
    """An error status with OpenAI's error body."""

    status: int
    message: str = "scripted failure"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Drop:
    """Close the connection: before the headers, or in the middle of the body."""

    mid_body: bool = False


@dataclass(frozen=True)
class Garbage:
    """200 with a body that is no reply."""

    body: bytes = b"<html>It works!</html>"


@dataclass
class Stall:
    """Say nothing until released, then answer."""

    then: Step
    released: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client closed the connection instead of waiting."""


Step = Reply | Fail | Drop | Garbage | Stall


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: Any


class ScriptedServer:
    """Serves chat-completions below `url`, and Responses and Messages if `dialects` says so."""

    def __init__(
        self,
        *,
        model: str = "scripted",
        owned_by: str = "",
        context_window: int | None = None,
        dialects: tuple[str, ...] = (),
        key: str = "",
        token_count: int | None = None,
    ) -> None:
        self.model, self.owned_by, self.context_window = model, owned_by, context_window
        self.dialects, self.key, self.token_count = dialects, key, token_count
        self.default: Step = text("ok")
        self.requests: list[Request] = []
        self.counted: list[Any] = []
        """What `/tokenize` was asked."""
        self.port = 0
        self._queue: deque[Step] = deque()
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def queue(self, *steps: Step) -> None:
        self._queue.extend(steps)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**30)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._answer)
        for path in self.dialects:
            app.router.add_post(f"/v1/{path}", self._answer)
        if self.token_count is not None:
            app.router.add_post("/tokenize", self._tokenize)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Go away; entering again comes back on the same port."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _models(self, request: web.Request) -> web.Response:
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            return _json({"error": {"message": "bad key"}}, 401)
        entry = {"id": self.model, "object": "model", "owned_by": self.owned_by}
        if self.context_window:
            entry["max_model_len"] = self.context_window
        return _json({"object": "list", "data": [entry]})

    async def _tokenize(self, request: web.Request) -> web.Response:
        self.counted.append(await request.json())
        return _json({"count": self.token_count, "tokens": []})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body == {}:  # a probe: does this path exist?
            return _json({"error": {"message": "model is missing"}}, 400)
        self.requests.append(Request(request.path, dict(request.headers), body))
        step = self._queue.popleft() if self._queue else self.default
        return await self._play(request, step)

    async def _play(self, request: web.Request, step: Step) -> web.StreamResponse:
        if isinstance(step, Stall):
            step.reached.set()
            try:
                await step.released.wait()
            except asyncio.CancelledError:
                step.hung_up.set()
                raise
            return await self._play(request, step.then)
        if isinstance(step, Drop):
            return await _drop(request, step)
        if isinstance(step, Garbage):
            return web.Response(body=step.body, content_type="application/json")
        if isinstance(step, Fail):
            error = {"message": step.message, "code": step.code, "type": "scripted"}
            return _json({"error": error}, step.status, step.headers)
        return _json(step.body, step.status, step.headers)


async def _drop(request: web.Request, step: Drop) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    if step.mid_body:
        await response.prepare(request)
        await response.write(b'{"choices": [')
    assert request.transport is not None
    request.transport.close()
    return response


def _json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        text=json.dumps(body), status=status, headers=headers, content_type="application/json"
    )


def text(content: str | None, *, ids: tuple[list[int], list[int]] | None = None) -> Reply:
    """A chat reply of text; `ids` are the prompt's and the reply's, with logprobs -0.5, -1.0, ..."""
    return _chat({"role": "assistant", "content": content}, "stop", ids)


def tool_call(name: str, arguments: Mapping[str, Any], *, id: str = "call_1") -> Reply:
    """A chat reply that calls one tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": id, "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return _chat(message, "tool_calls", None)


def _chat(
    message: Mapping[str, Any], finish: str, ids: tuple[list[int], list[int]] | None
) -> Reply:
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish}
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "scripted",
        "choices": [choice],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
    if ids is not None:
        prompt, response = ids
        entries = [{"token": "t", "logprob": -0.5 * (n + 1)} for n in range(len(response))]
        body |= {"prompt_token_ids": prompt, "prompt_logprobs": None, "kv_transfer_params": None}
        choice |= {"token_ids": response, "logprobs": {"content": entries}, "stop_reason": None}
        body["usage"] = {"prompt_tokens": len(prompt), "completion_tokens": len(response)}
    return Reply(body)
