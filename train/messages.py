"""Recorded calls as chat messages, whatever the harness's dialect, and what two of them share."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from rollout.first_sent import normalise
from rollout.gateway.dialects import DIALECTS
from rollout.transcript import UNREADABLE, chat_messages
from rollout.types import Call, JsonObject, Record

__all__ = [
    "Conversation",
    "anchor",
    "canonical",
    "conversation",
    "for_template",
    "image_urls",
    "images",
]

_IMAGE = (b'"image_url"', b'"input_image"', b'"image"')
"""Without any of these a request has no image, and need not be read."""


class Conversation(Record, frozen=True, kw_only=True):
    """A call's request and its reply, in chat terms."""

    messages: list[JsonObject]
    """The request's, then the reply as the last one (unless the model said nothing at all)."""
    asked: int
    """How many of them were there before the reply."""
    tools: list[JsonObject] = []


def conversation(call: Call) -> Conversation:
    """Both sides of an answered call. Raises ValueError for one that chat can't express."""
    try:
        request, _ = DIALECTS[call.dialect].to_chat(msgspec.json.decode(call.request))
        messages = chat_messages(call)
    except UNREADABLE as error:
        raise ValueError(f"call {call.index}: {type(error).__name__}: {error}") from error
    silent = messages == request["messages"]
    asked = len(messages) - (not silent)
    return Conversation(messages=messages, asked=asked, tools=request.get("tools") or [])


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
    some harnesses send it back and some do not. Raises ValueError as `conversation` does.
    """
    told = conversation(call)
    digest = hashlib.sha256()
    for message in told.messages[: told.asked]:
        text = canonical(message, reasoning=False).decode()
        digest.update(normalise(text).encode() + b"\n")
    return digest.hexdigest()


def images(call: Call) -> list[str]:
    """URLs of the images in a call's request, in the order that the model saw: mostly `data:` with a
    digest, see `rollout.pictures`."""
    if not any(mark in call.request for mark in _IMAGE):
        return []
    chat, _ = DIALECTS[call.dialect].to_chat(msgspec.json.decode(call.request))
    return [url for message in chat["messages"] for url in image_urls(message)]


def image_urls(message: JsonObject) -> Iterator[str]:
    """URLs of a chat message's images."""
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if part.get("type") == "image_url":
            url = part["image_url"]
            yield url if isinstance(url, str) else url["url"]


def for_template(messages: Iterable[JsonObject]) -> list[JsonObject]:
    """Messages as chat templates take them: a call's arguments as an object, nothing null.

    Arguments that are no JSON stay the text that the model wrote.
    """
    told = ({k: v for k, v in message.items() if v is not None} for message in messages)
    return [
        {**message, "tool_calls": [_opened(call) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else message
        for message in told
    ]


def _opened(call: JsonObject) -> JsonObject:
    function = call["function"]
    with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        arguments = msgspec.json.decode(function.get("arguments") or "{}")
        return {**call, "function": {**function, "arguments": arguments}}
    return call


def _flat(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for part in content:
        text = part.get("type") == "text"
        texts.append(part["text"] if text else msgspec.json.encode(part, order="sorted").decode())
    return "\n".join(texts)


def _arguments(call: JsonObject) -> str:
    written = call["function"].get("arguments") or ""
    try:
        return msgspec.json.encode(msgspec.json.decode(written), order="sorted").decode()
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return str(written)
