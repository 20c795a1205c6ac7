"""What the dialect tests share: chat replies, made up at random, and a reader of event streams."""

from __future__ import annotations

import json
import string
from collections.abc import Iterable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

STEADY = settings(derandomize=True, suppress_health_check=[HealthCheck.too_slow])
"""The same examples every time, and no opinion on how fast the machine is."""

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)
ARGUMENTS = st.one_of(
    OBJECTS.map(lambda value: json.dumps(value, ensure_ascii=False)),
    st.fixed_dictionaries({"input": TEXT}).map(json.dumps),
    VALUES.map(json.dumps),
    TEXT,
    st.sampled_from(["", "{bad json", '{"n": 1e400}', '{"s": "\\ud800"}', "[" * 5000, "NaN"]),
)
IDS = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=8)


@st.composite
def replies(draw: st.DrawFn, names: Iterable[str]) -> dict[str, Any]:
    """A whole chat reply that calls some of `names`."""
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | TEXT)}
    if reasoning := draw(TEXT):
        message["reasoning_content"] = reasoning
    ids = draw(st.lists(IDS, max_size=4, unique=True))
    if ids:
        message["tool_calls"] = [
            {
                "id": key,
                "type": "function",
                "function": {
                    "name": draw(st.sampled_from(sorted(names))),
                    "arguments": draw(ARGUMENTS),
                },
            }
            for key in ids
        ]
    finish = "tool_calls" if ids else "stop"
    return reply(message, finish)


def reply(message: dict[str, Any], finish: str = "stop", **choice: Any) -> dict[str, Any]:
    """A whole chat reply."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "served",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", **message},
                "finish_reason": finish,
                **choice,
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "total_tokens": 107,
            "prompt_tokens_details": {"cached_tokens": 60},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
    }


def call(key: str, name: str, arguments: str) -> dict[str, Any]:
    """A tool call of a chat message."""
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}


def parsed(stream: bytes) -> list[dict[str, Any]]:
    """The events of a stream; each named one must be named after its payload."""
    found = []
    assert stream.endswith(b"\n\n")
    for block in stream.decode().removesuffix("\n\n").split("\n\n"):
        *name, data = block.split("\n")
        if data == "data: [DONE]":
            continue
        payload = json.loads(data.removeprefix("data: "))
        if name:
            assert name == [f"event: {payload['type']}"]
        found.append(payload)
    return found


def stream(dialect: Any, answer: dict[str, Any], body: dict[str, Any]) -> bytes:
    """A whole stream, with keep-alives after the opening."""
    alive = dialect.keep_alive(body) * 2
    return dialect.opening(body) + alive + b"".join(dialect.events(answer, body))


def normal(message: dict[str, Any]) -> dict[str, Any]:
    """An assistant message without the differences that no chat template shows."""
    return {key: value for key, value in message.items() if value not in (None, "")}
