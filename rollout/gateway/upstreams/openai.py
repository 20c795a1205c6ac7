"""Any OpenAI-compatible model server: `--model openai:NAME --base-url http://HOST:PORT/v1`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from io import BytesIO
from typing import Any, Literal, Self

import aiohttp
import msgspec

from rollout.errors import UsageError
from rollout.gateway.dialects import DIALECTS
from rollout.gateway.upstream import ModelReply, ModelRequest, Refused, Transient, Upstream
from rollout.gateway.upstreams._chat_reply import read_chat_reply
from rollout.gateway.upstreams._errors import CONTEXT, error_of, fitting_output, message_of
from rollout.jsontext import read_json
from rollout.types import DialectName, JsonObject

__all__ = ["OpenAI"]

DEFAULT_URL = "https://api.openai.com/v1"
CHECK_SECONDS = 10.0
CALL_SECONDS = 1800.0
"""Of one try. Long, because a reasoning model may think for many minutes."""

CAPTURE: JsonObject = {"return_token_ids": True, "logprobs": True}
TOKEN_SERVERS = frozenset({"vllm", "sglang"})
"""Servers, by `owned_by`, that may tell the tokens behind a chat reply."""

REPLY_LIMIT = 256 * 2**20
"""Bytes of a reply, with the tokens behind it, at most."""

LARGE = 2**20
KEEP_ALIVE_SECONDS = 4.0
"""Of an idle connection: less than uvicorn's 5, lest a call be sent into one that is being closed."""

PROMPT_FIELDS = ("messages", "tools", "chat_template", "chat_template_kwargs")
"""Of a chat request: what vLLM renders its prompt from."""

WINDOW_FIELDS = ("max_model_len", "context_length", "context_window")
REPLY_FIELD: dict[DialectName, str] = {"responses": "output", "messages": "content"}
CAP_FIELDS = ("max_completion_tokens", "max_tokens", "max_output_tokens")

encode = msgspec.json.Encoder().encode


class OpenAI(Upstream):
    """A server that speaks chat-completions, and perhaps Responses and Messages.

    Token ids are only to be had on chat, so where the server gives them everything is asked as chat.
    """

    def __init__(self, model: str, base_url: str = DEFAULT_URL, key: str = "") -> None:
        self.model = self.label = model
        self.base_url = base_url.rstrip("/")
        self._key = key
        self._client: aiohttp.ClientSession | None = None
        self._tokens: Literal["no", "try", "yes"] = "no"
        """Whether calls ask for the tokens behind the reply."""

    @classmethod
    def from_spec(cls, argument: str, base_url: str) -> Self:
        if not argument:
            raise UsageError("--model openai: names no model; write --model openai:NAME")
        if base_url and not base_url.startswith(("http://", "https://")):
            raise UsageError(f"--base-url {base_url}: an address starts with http:// or https://")
        return cls(argument, base_url or DEFAULT_URL, os.environ.get("OPENAI_API_KEY", ""))

    async def check(self) -> None:
        """Find the model, its context window, the dialects and whether tokens can be had."""
        served = await self._served()
        entry = served.get(self.model)
        if entry is None:
            raise UsageError(self._unknown(list(served)))
        window = next((entry[k] for k in WINDOW_FIELDS if isinstance(entry.get(k), int)), 0)
        self.context_window = window or self.context_window
        if entry.get("owned_by") in TOKEN_SERVERS:
            self._tokens = "try"
        else:
            spoken = {name for name in REPLY_FIELD if await self._speaks(name)}
            self.dialects = frozenset({"chat", *spoken})

    async def complete(self, request: ModelRequest) -> ModelReply:
        try:
            return await self._ask(request.dialect, request.body)
        except Refused as refusal:
            room = fitting_output(str(refusal), self.context_window)
            if refusal.code != CONTEXT or room == 0:
                raise
            # The prompt fits, only not together with the longest reply that was allowed for.
            caps = {name: room for name in CAP_FIELDS if name in request.body}
            return await self._ask(request.dialect, request.body | caps)

    async def count_tokens(self, body: JsonObject) -> int:
        """By the server's own tokenizer where it has vLLM's `/tokenize`."""
        prompt: JsonObject = {name: body[name] for name in PROMPT_FIELDS if name in body}
        prompt["messages"] = [_thinking(message) for message in prompt.get("messages", ())]
        root = self.base_url.removesuffix("/v1")
        try:
            payload, _ = await self._post(f"{root}/tokenize", {"model": self.model} | prompt)
            return read_json(payload, TokenCount).count
        except (Transient, Refused, ValueError):
            return await super().count_tokens(body)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    def fingerprint(self) -> JsonObject:
        return {
            "model": self.model,
            "base_url": self.base_url,
            "context_window": self.context_window,
            "dialects": sorted(self.dialects),
        }

    async def _ask(self, dialect: DialectName, body: JsonObject) -> ModelReply:
        url = self.base_url + DIALECTS[dialect].path
        if dialect != "chat":
            payload, headers = await self._post(url, body)
            return _foreign(payload, headers, REPLY_FIELD[dialect])
        wanted = bool(body.get("logprobs"))
        if self._tokens == "no":
            payload, headers = await self._post(url, body)
        else:
            payload, headers = await self._post_capturing(url, body)
        return read_chat_reply(payload, headers, keep_logprobs=wanted)

    async def _post_capturing(self, url: str, body: JsonObject) -> tuple[bytes, Mapping[str, str]]:
        """Ask for tokens too, until the server turns out to refuse a call only for that."""
        try:
            answer = await self._post(url, body | CAPTURE)
        except Refused as refusal:
            if self._tokens == "yes" or refusal.code == CONTEXT:
                raise
            answer = await self._post(url, body)
            self._tokens = "no"
        else:
            self._tokens = "yes"
        return answer

    async def _post(self, url: str, body: JsonObject) -> tuple[bytes, Mapping[str, str]]:
        data = encode(body)
        # aiohttp warns of large bodies that are given as bytes: it would send them in one go.
        sent = BytesIO(data) if len(data) > LARGE else data
        try:
            async with self._http().post(url, data=sent, headers=JSON_BODY) as response:
                payload = await _whole(response)
        except TimeoutError as error:
            raise Transient(f"{url}: no answer in {CALL_SECONDS:.0f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Transient(f"{url}: {type(error).__name__}: {error}") from error
        if response.status >= 400:
            raise error_of(response.status, response.headers, payload)
        return payload, response.headers

    async def _served(self) -> dict[str, JsonObject]:
        """Models by id. Raises UsageError when the server can't be used."""
        url = f"{self.base_url}/models"
        timeout = aiohttp.ClientTimeout(total=CHECK_SECONDS)
        try:
            async with self._http().get(url, timeout=timeout) as response:
                status, payload = response.status, await _whole(response)
        except (Transient, TimeoutError, aiohttp.ClientError, OSError) as error:
            why = str(error) or f"no answer in {CHECK_SECONDS:.0f} s"
            raise UsageError(
                f"no model server answers at {url} ({why}): start it, or correct the address"
            ) from error
        if status in (401, 403):
            which = "refuses the key in" if self._key else "wants a key: set"
            raise UsageError(f"{url} {which} OPENAI_API_KEY (HTTP {status})")
        try:
            listed = read_json(payload, ModelList).data
        except ValueError as error:
            raise UsageError(
                f"{url} does not list models (HTTP {status}: {message_of(payload)[:200]}):"
                " --base-url must be an OpenAI-compatible server's, and usually ends in /v1"
            ) from error
        return {str(entry["id"]): entry for entry in listed if "id" in entry}

    def _unknown(self, served: list[str]) -> str:
        close = get_close_matches(self.model, served, n=3, cutoff=0.4)
        known = f"nearest: {', '.join(close)}" if close else f"it has: {', '.join(served[:10])}"
        return f"{self.base_url} serves no model {self.model!r}; {known}"

    async def _speaks(self, dialect: DialectName) -> bool:
        """A path that exists complains about an empty body; one that does not says 404 or 405."""
        url = self.base_url + DIALECTS[dialect].path
        timeout = aiohttp.ClientTimeout(total=CHECK_SECONDS)
        try:
            async with self._http().post(
                url, data=b"{}", headers=JSON_BODY, timeout=timeout
            ) as response:
                return response.status in (400, 422)
        except (TimeoutError, aiohttp.ClientError, OSError):
            return False

    def _http(self) -> aiohttp.ClientSession:
        """The client, made on first use because it belongs to the running loop."""
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
                skip_auto_headers=("Accept-Encoding",),
                timeout=aiohttp.ClientTimeout(total=CALL_SECONDS, sock_connect=CHECK_SECONDS),
            )
        return self._client


def _thinking(message: JsonObject) -> JsonObject:
    """`/tokenize` knows reasoning by its new name only; calls may use either."""
    thoughts = message.get("reasoning_content")
    return message if thoughts is None else {"reasoning": thoughts, **message}


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body. Raises Transient where it has no end."""
    payload = bytearray()
    async for chunk in response.content.iter_any():
        payload += chunk
        if len(payload) > REPLY_LIMIT:
            raise Transient(f"{response.url}: the reply is longer than {REPLY_LIMIT >> 20} MiB")
    return bytes(payload)


JSON_BODY = {"Content-Type": "application/json"}


class ModelList(msgspec.Struct):
    data: list[JsonObject]


class TokenCount(msgspec.Struct):
    count: int


def _foreign(payload: bytes, headers: Mapping[str, str], field: str) -> ModelReply:
    """A Responses or Messages reply, as it came."""
    try:
        body = read_json(payload, dict[str, Any])
    except ValueError as error:
        raise Transient(f"the reply is not JSON: {error}") from error
    if not isinstance(body.get(field), list) or body.get("status") == "failed":
        raise Transient(f"the reply has no {field}: {message_of(payload)[:200]}")
    model, weights = str(body.get("model", "")), headers.get("x-weight-version", "")
    return ModelReply(body=body, model=model, weights=weights)
