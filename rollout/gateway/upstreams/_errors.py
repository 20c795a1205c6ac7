"""What an OpenAI-compatible server's error answers mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

from rollout.gateway.upstream import Refused, Transient
from rollout.jsontext import read_json

__all__ = ["CONTEXT", "error_of", "fitting_output", "message_of"]

CONTEXT = "context_length_exceeded"
TRANSIENT = frozenset({408, 409, 425, 429})

OVERFLOW = re.compile(
    r"context[ _](?:length|window|size|limit)|maximum (?:input|model|sequence) length|prompt is too long"
    r"|max_tokens must be at least 1, got 0",
    re.IGNORECASE,
)
"""How OpenAI, Anthropic, vLLM, SGLang and llama.cpp say that a request does not fit.

The last is vLLM's where the prompt fills the window to the last token.
"""

WINDOW = re.compile(r"context length(?: is| of)?(?: only)? \(?(\d+)", re.IGNORECASE)

PROMPT = re.compile(
    r"(?:passed|has|contains|resulted in|:|\()(?: at least)? ?(\d+)"
    r" (?:in the messages|in the prompt|tokens from the input|(?:input|prompt) tokens)",
    re.IGNORECASE,
)


def error_of(status: int, headers: Mapping[str, str], payload: bytes) -> Transient | Refused:
    """The error that an answer with `status` 400 or above stands for."""
    message, code = message_of(payload), _code(payload)
    if status in TRANSIENT or status >= 500:
        return Transient(f"HTTP {status}: {message}", _retry_after(headers))
    if code == CONTEXT or OVERFLOW.search(message):
        return Refused(message, 400, CONTEXT)
    return Refused(message, status, code or "invalid_request_error")


def fitting_output(message: str, window: int) -> int:
    """Tokens left for the reply, where an overflow message tells the prompt's size; else 0."""
    prompt = PROMPT.search(message)
    if prompt is None:
        return 0
    told = WINDOW.search(message)
    return max(0, (int(told[1]) if told else window) - int(prompt[1]))


def message_of(payload: bytes) -> str:
    """The human part of an error body, in one line of at most 1,000 characters."""
    body = _json(payload)
    error = body.get("error", body)
    found = error.get("message") if isinstance(error, dict) else error
    text = found if isinstance(found, str) else payload.decode(errors="replace")
    return " ".join(text.split())[:1000] or "no message"


def _code(payload: bytes) -> str:
    error = _json(payload).get("error")
    if not isinstance(error, dict):
        return ""
    return next((error[k] for k in ("code", "type") if isinstance(error.get(k), str)), "")


def _json(payload: bytes) -> dict[str, Any]:
    try:
        return read_json(payload, dict[str, Any])
    except ValueError:
        return {}


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds; HTTP allows a number or a date (RFC 9110, 10.2.3)."""
    value = headers.get("Retry-After", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except (ValueError, OverflowError):
        return 0.0
