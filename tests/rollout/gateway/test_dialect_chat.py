"""Chat-completions: the internal form, and its stream."""

from __future__ import annotations

import pytest
from support.dialects import call, parsed, reply, stream

from rollout.gateway.dialects import DIALECTS
from rollout.types import Usage

CHAT = DIALECTS["chat"]
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True, "seed": 1}


def test_a_request_stays_as_it_is_but_for_streaming():
    chat, memory = CHAT.to_chat({**BODY, "stream_options": {"include_usage": True}})
    assert chat == {"model": "m", "messages": BODY["messages"], "seed": 1}
    assert memory is None


def test_a_reply_stays_as_it_is():
    said = reply({"content": "hi"})
    assert CHAT.from_chat(said, BODY, None) is said
    assert CHAT.usage(said) == Usage(prompt=100, completion=7)
    assert CHAT.finish(said) == "stop"


def test_a_stream():
    said = reply(
        {"content": "hi", "reasoning_content": "hm", "tool_calls": [call("a", "f", "{}")] * 2},
        "tool_calls",
        logprobs={"content": []},
    )
    body = {**BODY, "stream_options": {"include_usage": True}}
    data = stream(CHAT, said, body)
    assert data.endswith(b"data: [DONE]\n\n")
    *chunks, usage = parsed(data)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[:5] == [
        {"role": "assistant"},
        {},
        {},
        {"reasoning_content": "hm"},
        {"content": "hi"},
    ]
    assert [made["index"] for made in deltas[5]["tool_calls"]] == [0, 1]
    assert chunks[-1]["choices"][0] == {
        "index": 0,
        "delta": {},
        "finish_reason": "tool_calls",
        "logprobs": {"content": []},
    }
    assert (usage["choices"], usage["usage"]) == ([], said["usage"])
    assert len({chunk["id"] for chunk in chunks}) == 1


def test_usage_is_streamed_only_when_asked_for():
    assert all("usage" not in chunk for chunk in parsed(stream(CHAT, reply({}), BODY)))


def test_every_choice_is_streamed():
    said = reply({"content": "one"})
    said["choices"].append({**said["choices"][0], "index": 1})
    chunks = parsed(b"".join(CHAT.events(said, BODY)))
    assert [chunk["choices"][0]["index"] for chunk in chunks] == [0, 0, 1, 1]


def test_errors():
    body = CHAT.error(400, "too long", "context_length_exceeded")
    assert body["error"]["type"] == "invalid_request_error"
    assert body["error"]["code"] == "context_length_exceeded"
    assert CHAT.error(502, "dead", "x")["error"]["type"] == "server_error"
    (event,) = parsed(b"".join(CHAT.error_events("dead", "x", BODY)))
    assert event["error"]["message"] == "dead"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "messages: must be a list, but it is missing"),
        ({"messages": "hi"}, "messages: must be a list, not str"),
        ({"messages": ["hi"]}, "messages[0]: must be an object, not str"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role: must be a string"),
    ],
)
def test_a_bad_body_is_refused(body, problem):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        CHAT.to_chat(body)
    assert str(caught.value).startswith(problem)
