"""Recorded calls as chat messages, whatever the harness's dialect, and what two of them share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from rollout.first_sent import normalise
from rollout.gateway.dialects import DIALECTS
from rollout.types import Call, JsonObject, Record

__all__ = [
    "Conversation",
    "anchor",
    "canonical",
    "conversation",
    "image_digest",
    "image_urls",
    "images",
]

_HISTORY = {"chat": "messages", "messages": "messages", "responses": "input"}

_IMAGE = (b'"image_url"', b'"input_image"', b'"image"')
"""Without any of these a request has no image, and need not be read."""


class Conversation(Record, frozen=True, kw_only=True):
    """A call's request and its reply, as the model's server was asked in chat terms."""

    messages: list[JsonObject]
    """The request's, then the reply as the last one (unless the model said nothing at all)."""
    asked: int
    """How many of them the request brought."""
    tools: list[JsonObject] = []


def conversation(call: Call) -> Conversation:
    """Both sides of an answered call. Raises ValueError for a body that chat can't express."""
    try:
        body = msgspec.json.decode(call.request, type=JsonObject)
        reply = msgspec.json.decode(call.reply, type=JsonObject)
    except msgspec.DecodeError as error:
        raise ValueError(f"call {call.index}: {error}") from error
    dialect, key = DIALECTS[call.dialect], _HISTORY[call.dialect]
    asked, _ = dialect.to_chat(body)
    history = body[key]
    if isinstance(history, str):
        history = [{"role": "user", "content": history}]
    # A reply has the form of the history that the next request will bring: translate it as part of one.
    whole, _ = dialect.to_chat({**body, key: [*history, *_said(call, reply)]})
    messages = whole["messages"]
    silent = messages == asked["messages"]
    count = len(messages) if silent else len(messages) - 1
    return Conversation(messages=messages, asked=count, tools=whole.get("tools") or [])


def _said(call: Call, reply: JsonObject) -> list[JsonObject]:
    if call.dialect == "responses":
        return [{k: v for k, v in item.items() if k != "status"} for item in reply["output"]]
    if call.dialect == "messages":
        return [{"role": "assistant", "content": reply["content"]}]
    return [reply["choices"][0]["message"]]


def canonical(message: JsonObject, *, reasoning: bool = True) -> bytes:
    """What a message says, as JSON: no call ids, arguments in one order, parts joined, null as empty."""
    calls = message.get("tool_calls") or ()
    said = {
        "role": message.get("role"),
        "content": _flat(message.get("content")),
        "calls": [[call["function"]["name"], _arguments(call)] for call in calls],
        "reasoning": (message.get("reasoning_content") or "") if reasoning else "",
    }
    return msgspec.json.encode(said)


def anchor(call: Call) -> str:
    """A digest of the state in which a call was made: equal where only ids, times, addresses differ.

    GiGPO (arXiv 2505.10978) groups steps by identical states; a harness's prompts hold timestamps and
    temporary paths, so hardly any two would be identical as sent. Old reasoning is left out too, since
    some harnesses send it back and some do not.
    """
    told = conversation(call)
    digest = hashlib.sha256()
    for message in told.messages[: told.asked]:
        digest.update(normalise(canonical(message, reasoning=False).decode()).encode() + b"\n")
    return digest.hexdigest()


def images(call: Call) -> list[str]:
    """URLs (mostly `data:`) of the images in a call's request, in the order that the model saw."""
    if not any(mark in call.request for mark in _IMAGE):
        return []
    body = msgspec.json.decode(call.request, type=JsonObject)
    chat, _ = DIALECTS[call.dialect].to_chat(body)
    return [url for message in chat["messages"] for url in image_urls(message)]


def image_urls(message: JsonObject) -> Iterator[str]:
    """URLs of a chat message's images."""
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "image_url":
            url = part["image_url"]
            yield url if isinstance(url, str) else url["url"]


def image_digest(url: str) -> str:
    """SHA-256 of an image's URL: of its bytes, in effect, where the URL holds them."""
    return hashlib.sha256(url.encode()).hexdigest()


def _flat(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for part in content:
        kind = part.get("type")
        texts.append(part["text"] if kind == "text" else msgspec.json.encode(part).decode())
    return "\n".join(texts)


def _arguments(call: JsonObject) -> str:
    written = call["function"].get("arguments") or ""
    try:
        return msgspec.json.encode(msgspec.json.decode(written), order="sorted").decode()
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return str(written)
