"""What a harness says to the model before it has done anything: its system prompt and its tool schemas.

Both change a result as much as a version number does, and harnesses change them between releases, by
platform and by configuration. So they are fingerprinted as sent, whatever the harness says about itself.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from rollout.gateway.dialects.messages_request import BILLING
from rollout.types import Call, JsonObject, Record

__all__ = ["FirstSent", "first_sent", "normalise"]

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_MONTH = rf"(?:{_MONTHS}|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
_VARYING = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"https?://[^\s/\"']+/e/[\w.~-]+", "<gateway>"),
        (r"\b(127\.0\.0\.1|localhost):\d+", r"\1:<port>"),
        (r"/[^\s\"']*/anyharness/sandboxes/[\w.-]+", "<sandbox>"),
        (r"/(?:var/)?tmp/[\w.-]+", "<tmp>"),
        (
            r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z\b|[+-]\d\d:?\d\d\b)?",
            "<date>",
        ),
        (rf"\b(?:\d{{1,2}} {_MONTH},? \d{{4}}|{_MONTH} \d{{1,2}},? \d{{4}})\b", "<date>"),
        (r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? (?=<date>)", ""),
        (r"\b\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm]\b)?", "<time>"),
        (r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<id>"),
        (r"\b(?=[0-9a-f]*\d)[0-9a-f]{16,}\b", "<id>"),
    )
)


class FirstSent(Record, frozen=True, kw_only=True):
    """Fingerprints of a first call. The hashes are of normalised text, the sizes of the text as sent."""

    system_sha256: str
    system_bytes: int
    tools_sha256: str
    tools_bytes: int
    tools: int
    """The number of tools at the top level; a namespace is one."""


def first_sent(call: Call) -> FirstSent:
    """Fingerprint a harness's first main call, in whichever dialect it speaks.

    Never fails: the call may come from an agent that plays with the address, not from its harness.
    """
    body = _body(call.request)
    system, tools = _SYSTEM[call.dialect](body), _list(body.get("tools"))
    schemas = msgspec.json.encode(tools, order="sorted").decode()
    return FirstSent(
        system_sha256=_sha256(normalise(system)),
        system_bytes=len(system.encode()),
        tools_sha256=_sha256(normalise(schemas)),
        tools_bytes=len(schemas.encode()),
        tools=len(tools),
    )


def normalise(text: str) -> str:
    """The text without what differs from episode to episode: addresses, ids, dates, temporary paths."""
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return text


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _body(request: bytes) -> JsonObject:
    try:
        return msgspec.json.decode(request, type=JsonObject)
    except msgspec.DecodeError:
        return {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(content: Any) -> str:
    """The text of a message's content, which is a string or a list of typed parts."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in _list(content) if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def _of_roles(messages: Any) -> str:
    """The text of system and developer messages."""
    return "\n".join(
        _text(message.get("content"))
        for message in _list(messages)
        if isinstance(message, dict) and message.get("role") in ("system", "developer")
    )


def _chat(body: JsonObject) -> str:
    return _of_roles(body.get("messages"))


def _responses(body: JsonObject) -> str:
    """`instructions`, or developer messages at the head of `input` (as Codex does)."""
    return "\n".join(filter(None, (_text(body.get("instructions")), _of_roles(body.get("input")))))


def _messages(body: JsonObject) -> str:
    """`system`, without Claude Code's billing line, and system messages among the others."""
    told = _list(body.get("system")) or [{"text": body.get("system")}]
    kept = [part for part in told if not _text([part]).startswith(BILLING)]
    return "\n".join(filter(None, (_text(kept), _of_roles(body.get("messages")))))


_SYSTEM = {"chat": _chat, "responses": _responses, "messages": _messages}
