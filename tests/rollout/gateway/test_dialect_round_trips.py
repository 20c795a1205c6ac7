"""Whatever a model says comes back unchanged as history, and a stream says what a whole reply says."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import anthropic
import openai
import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, RawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses import ResponseStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from support.dialects import STEADY, normal, parsed, replies, reply, stream

from rollout.gateway.dialects import DIALECTS
from rollout.gateway.dialects.messages_request import UNPARSED

DATA = Path(__file__).parent / "data"
CODEX = json.loads((DATA / "codex_request.json").read_text())
CLAUDE = json.loads((DATA / "claude_code_request.json").read_text())
CHAT, RESPONSES, MESSAGES = (DIALECTS[name] for name in ("chat", "responses", "messages"))
LONG = "a_tool_with_a_name_that_nobody_would_want_to_write_down_twice"
CODEX["tools"].append(
    {
        "type": "namespace",
        "name": "mcp__a_rather_long_server_name",
        "description": "",
        "tools": [{"type": "function", "name": f"{LONG}_{end}", "parameters": {}} for end in "ab"],
    }
)
CODEX_NAMES = [tool["function"]["name"] for tool in RESPONSES.to_chat(CODEX)[0]["tools"]]
CODEX_EVENTS = TypeAdapter(ResponseStreamEvent)
CLAUDE_EVENTS = TypeAdapter(RawMessageStreamEvent)


@STEADY
@given(replies([*CODEX_NAMES, "made_up"]))
def test_a_reply_comes_back_as_history_of_responses(said):
    _, names = RESPONSES.to_chat(CODEX)
    answer = json.loads(json.dumps(RESPONSES.from_chat(said, CODEX, names)))
    later = {
        **CODEX,
        "input": [*CODEX["input"], *answer["output"], {"role": "user", "content": "x"}],
    }
    messages = RESPONSES.to_chat(later)[0]["messages"]
    expected = said["choices"][0]["message"]
    for call in expected.get("tool_calls", ()):
        if call["function"]["name"] == "apply_patch":
            call["function"]["arguments"] = _as_freeform(call["function"]["arguments"])
    assert normal(messages[-2]) == normal(expected)
    assert messages[:-2] == RESPONSES.to_chat(CODEX)[0]["messages"]


def _as_freeform(arguments):
    """How a freeform call comes back: well-formed arguments as they were, others as the input."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = None
    well = isinstance(value, dict) and value.keys() == {"input"} and isinstance(value["input"], str)
    well = well and "\ud800" not in value["input"]
    return json.dumps(value if well else {"input": arguments}, ensure_ascii=False)


@pytest.mark.parametrize("include", [["reasoning.encrypted_content"], []])
@pytest.mark.parametrize("echoed", ["content", "encrypted_content", "summary"])
def test_reasoning_comes_back_by_whatever_a_client_echoes(echoed, include):
    body = {**CODEX, "include": include}
    said = {"choices": [{"message": {"content": "hi", "reasoning_content": "because"}}]}
    item, *rest = RESPONSES.from_chat(said, body, RESPONSES.to_chat(body)[1])["output"]
    kept = {"type": "reasoning", "summary": [], echoed: item.get(echoed)}
    messages = RESPONSES.to_chat({**body, "input": [kept, *rest]})[0]["messages"]
    carried = echoed == "content" or (echoed == "encrypted_content" and include)
    assert messages[-1].get("reasoning_content") == ("because" if carried else None)


@STEADY
@given(replies(["Bash", "mcp__wx__get_weather", "made_up"]))
def test_a_reply_comes_back_as_history_of_messages(said):
    answer = json.loads(json.dumps(MESSAGES.from_chat(said, CLAUDE, None)))
    turn = [
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": "x"},
    ]
    body = {**CLAUDE, "messages": [*CLAUDE["messages"], *turn]}
    messages = MESSAGES.to_chat(body)[0]["messages"]
    assert normal(_readable(messages[-2])) == normal(_readable(said["choices"][0]["message"]))
    assert messages[:-2] == MESSAGES.to_chat(CLAUDE)[0]["messages"]


def _readable(message):
    """The message with arguments that are JSON objects as objects: their spacing may change."""
    message = json.loads(json.dumps(message))
    for call in message.get("tool_calls", ()):
        text = call["function"]["arguments"]
        try:
            value = json.loads(text or "{}")
        except (ValueError, RecursionError):
            continue
        spaced = isinstance(value, dict) and UNPARSED not in value
        call["function"]["arguments"] = value if spaced else text
    return message


@STEADY
@given(replies(["f"]), st.booleans())
def test_a_stream_of_chat_says_what_the_reply_says(said, include):
    body = {"messages": [{"role": "user", "content": "x"}], "model": "m"}
    if include:
        body["stream_options"] = {"include_usage": True}
    state = ChatCompletionStreamState()
    for chunk in parsed(stream(CHAT, said, body)):
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    snapshot = state.current_completion_snapshot.model_dump(exclude_unset=True, warnings=False)
    choice = json.loads(json.dumps(snapshot["choices"][0]))
    assert choice["finish_reason"] == said["choices"][0]["finish_reason"]
    for made in choice["message"].get("tool_calls") or ():
        made.pop("index", None)
        made["function"].pop("parsed_arguments", None)
    choice["message"].pop("parsed", None)
    assert normal(choice["message"]) == normal(said["choices"][0]["message"])
    assert snapshot.get("usage") == (said["usage"] if include else None)


@STEADY
@given(replies(CODEX_NAMES))
def test_a_stream_of_responses_says_what_the_reply_says(said):
    answer = RESPONSES.from_chat(said, CODEX, RESPONSES.to_chat(CODEX)[1])
    Response.model_validate(answer, strict=True)
    events = parsed(stream(RESPONSES, answer, CODEX))
    state = ResponseStreamState(input_tools=openai.omit, text_format=openai.omit)
    for event in events:
        strict = CODEX_EVENTS.validate_python(event, strict=True)
        if event["type"] != "response.completed":
            state.handle_event(strict)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == [0, 1, 1, 1, *range(2, len(numbers) - 2)]
    assert events[-1]["response"] == answer
    assert {e["response"]["id"] for e in events if "response" in e} == {answer["id"]}
    assert _assembled(events) == answer["output"]


def _assembled(events):
    """Output items as their deltas alone tell them."""
    items, fields = {}, {"function_call": "arguments", "custom_tool_call": "input"}
    for event in events:
        kind, index = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            items[index] = dict(event["item"])
        elif kind == "response.content_part.added":
            items[index]["content"].append(event["part"])
        elif kind.endswith(".delta") and "content_index" in event:
            items[index]["content"][event["content_index"]]["text"] += event["delta"]
        elif kind.endswith(".delta"):
            items[index][fields[items[index]["type"]]] += event["delta"]
        elif kind == "response.output_item.done":
            if "status" in event["item"]:
                items[index]["status"] = event["item"]["status"]
            else:
                del items[index]["status"]
            assert items[index] == event["item"]
    return [items[index] for index in sorted(items)]


@STEADY
@given(replies(["Bash", "made_up"]))
def test_a_stream_of_messages_says_what_the_reply_says(said):
    answer = MESSAGES.from_chat(said, CLAUDE, None)
    Message.model_validate(answer, strict=True)
    snapshot, buffers = None, defaultdict(bytes)
    for event in parsed(stream(MESSAGES, answer, CLAUDE)):
        if event["type"] == "ping":
            continue
        snapshot = accumulate_event(
            event=CLAUDE_EVENTS.validate_python(event, strict=True),
            current_snapshot=snapshot,
            json_bufs=buffers,
            output_format=anthropic.NOT_GIVEN,
        )
    assembled = snapshot.to_dict()
    assert assembled.pop("stop_details") is None
    for block in assembled["content"]:
        block.pop("parsed_output", None)
    assert assembled == answer


@STEADY
@given(replies(["f"]))
def test_reading_is_deterministic_and_leaves_the_request_alone(said):
    for dialect, body in ((RESPONSES, CODEX), (MESSAGES, CLAUDE)):
        before = json.dumps(body)
        first, memory = dialect.to_chat(body)
        assert json.dumps(first) == json.dumps(dialect.to_chat(json.loads(before))[0])
        assert stream(dialect, dialect.from_chat(said, body, memory), body) == stream(
            dialect, dialect.from_chat(said, body, memory), body
        )
        assert json.dumps(body) == before


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    ("message", "empty"),
    [
        ({"content": None}, True),
        ({"content": "", "reasoning_content": "hm"}, True),
        ({"content": "yes"}, False),
        (
            {
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            False,
        ),
    ],
)
def test_a_reply_that_says_nothing_is_known(name, message, empty):
    dialect = DIALECTS[name]
    body = {"model": "m", "messages": [], "input": "hi", "max_tokens": 9}
    _, memory = dialect.to_chat(body)
    assert dialect.is_empty(dialect.from_chat(reply(message), body, memory)) is empty
