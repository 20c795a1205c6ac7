"""Messages: what Claude Code sends, what else may be sent, and what is answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.dialects import call, parsed, reply, stream

from rollout.gateway.dialects import DIALECTS
from rollout.types import Usage

MESSAGES = DIALECTS["messages"]
CLAUDE = json.loads((Path(__file__).parent / "data" / "claude_code_request.json").read_text())
BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def text(value, **fields):
    return {"type": "text", "text": value, **fields}


def messages(*turns, **fields):
    return MESSAGES.to_chat({**BODY, "messages": list(turns), **fields})[0]["messages"]


def user(*blocks):
    return messages({"role": "user", "content": list(blocks)})


def answer(message, finish="stop", body=BODY, **choice):
    return MESSAGES.from_chat(reply(message, finish, **choice), body, None)


def test_a_request_of_claude_code():
    chat, _ = MESSAGES.to_chat(CLAUDE)
    found = chat.pop("messages")
    assert chat.pop("tools")[1]["function"].keys() == {"name", "description", "parameters"}
    assert chat == {
        "model": "fake-model",
        "max_completion_tokens": 32000,
        "reasoning_effort": "high",
    }
    system = "You are an agent.\n\n\nHelp with software tasks."
    assert found[0] == {"role": "system", "content": system}
    roles = ["user", "user", "assistant", "tool", "tool", "assistant", "tool", "tool", "user"]
    assert [message["role"] for message in found[1:10]] == roles
    assert found[2]["content"].startswith("# MCP Server Instructions")
    assert found[6]["reasoning_content"] == "think B"
    assert [part["type"] for part in found[9]["content"]] == ["text", "image_url"] * 2
    assert found[10]["tool_calls"][0]["function"]["arguments"] == "{bad json"
    assert found[11]["content"].startswith("[error]\n<tool_use_error>")


def test_system_as_a_string_and_as_the_first_message():
    found = messages(
        {"role": "system", "content": [text("two")]},
        {"role": "user", "content": "hi"},
        system="one",
    )
    assert found[0] == {"role": "system", "content": "one\n\ntwo"}


def test_blocks_of_a_user_message():
    document = {"type": "text", "media_type": "text/plain", "data": "body"}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "AA=="}
    (message,) = user(
        text("see", cache_control={"type": "ephemeral"}),
        PNG,
        {"type": "image", "source": {"type": "url", "url": "http://x/a.png"}},
        {"type": "document", "source": document, "title": "T", "context": "C"},
        {"type": "document", "source": {"type": "content", "content": [text("inner")]}},
        {"type": "document", "source": pdf},
        {"type": "search_result", "title": "S", "source": "url", "content": [text("found")]},
    )
    assert message["content"] == [
        text("see"),
        IMAGE,
        {"type": "image_url", "image_url": {"url": "http://x/a.png"}},
        text("T\nC"),
        text("body"),
        text("inner"),
        {
            "type": "file",
            "file": {
                "filename": "document.pdf",
                "file_data": "data:application/pdf;base64,AA==",
            },
        },
        text("S\nurl"),
        text("found"),
    ]


def test_tool_results():
    found = user(
        {"type": "tool_result", "tool_use_id": "a", "content": "plain"},
        {"type": "tool_result", "tool_use_id": "b", "content": [text("see"), PNG]},
        {"type": "tool_result", "tool_use_id": "c", "is_error": True},
        text("go on"),
    )
    assert found == [
        {"role": "tool", "tool_call_id": "a", "content": "plain"},
        {"role": "tool", "tool_call_id": "b", "content": "see\n[attachment 1]"},
        {"role": "tool", "tool_call_id": "c", "content": "[error]"},
        {"role": "user", "content": [text("[attachment 1]"), IMAGE, text("go on")]},
    ]


def test_turns_of_the_assistant_are_combined():
    use = {"type": "tool_use", "id": "1", "name": "f", "input": {"é": 1}}
    found = messages(
        {"role": "assistant", "content": [text("a"), text("b"), {"type": "redacted_thinking"}]},
        {"role": "assistant", "content": [use]},
    )
    calls = [call("1", "f", '{"é": 1}')]
    assert found == [{"role": "assistant", "content": "ab", "tool_calls": calls}]


def test_fields_of_the_request():
    schema = {"type": "object"}
    chat, _ = MESSAGES.to_chat(
        {
            **BODY,
            "stop_sequences": ["END"],
            "temperature": 0,
            "top_k": 5,
            "output_config": {
                "effort": "low",
                "format": {"type": "json_schema", "schema": schema},
            },
            "thinking": {"type": "disabled"},
            "tools": [
                {"name": "f", "description": "F", "input_schema": schema},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        }
    )
    del chat["messages"]
    assert chat == {
        "model": "m",
        "max_completion_tokens": 9,
        "stop": ["END"],
        "temperature": 0,
        "top_k": 5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "output", "schema": schema, "strict": True},
        },
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "F", "parameters": schema},
            }
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_tool_choice(choice, expected):
    tools = [{"type": "custom", "name": "f", "input_schema": {}}]
    chat, _ = MESSAGES.to_chat({**BODY, "tools": tools, "tool_choice": choice})
    assert chat["tool_choice"] == expected


def test_a_body_to_count_has_no_max_tokens():
    chat, _ = MESSAGES.to_chat({"model": "m", "messages": BODY["messages"]})
    assert chat == {"model": "m", "messages": BODY["messages"]}


def test_a_reply():
    found = answer(
        {"content": "hi", "reasoning": "hm", "tool_calls": [call("", "f", "{bad")]},
        "tool_calls",
    )
    thinking, said, use = found["content"]
    assert (thinking["thinking"], bool(thinking["signature"])) == ("hm", True)
    assert said == text("hi")
    assert (use["input"], bool(use["id"])) == ({"__unparsed_arguments__": "{bad"}, True)
    assert found["usage"] == {
        "input_tokens": 40,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 60,
        "output_tokens": 7,
    }
    assert MESSAGES.usage(found) == Usage(prompt=100, completion=7)


@pytest.mark.parametrize(
    ("finish", "reason", "back"),
    [
        ("stop", "end_turn", "stop"),
        ("tool_calls", "tool_use", "tool_calls"),
        ("length", "max_tokens", "length"),
        ("content_filter", "refusal", "content_filter"),
    ],
)
def test_why_it_stopped(finish, reason, back):
    found = answer({"content": "hi"}, finish)
    assert (found["stop_reason"], found["stop_sequence"]) == (reason, None)
    assert MESSAGES.finish(found) == back


def test_a_stop_sequence_is_named():
    body = {**BODY, "stop_sequences": ["END"]}
    found = answer({"content": "hi"}, body=body, stop_reason="END")
    assert (found["stop_reason"], found["stop_sequence"]) == ("stop_sequence", "END")


def test_a_forced_call_counts_as_tool_use():
    assert answer({"tool_calls": [call("1", "f", "")]})["stop_reason"] == "tool_use"


def test_a_stream():
    found = answer({"content": "hi", "reasoning_content": "hm"})
    kinds = [event["type"] for event in parsed(stream(MESSAGES, found, BODY))]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    thinking = [*block[:2], *block[1:]]
    assert kinds == [
        "message_start",
        *["ping"] * 3,
        *thinking,
        *block,
        "message_delta",
        "message_stop",
    ]


def test_errors():
    error = MESSAGES.error(429, "slow down", "rate_limit_exceeded")
    assert error == {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    assert MESSAGES.error(418, "x", "x")["error"]["type"] == "invalid_request_error"
    assert MESSAGES.error(500, "x", "x")["error"]["type"] == "api_error"
    (event,) = parsed(b"".join(MESSAGES.error_events("9 > 8", "context_length_exceeded", BODY)))
    assert event["error"] == {
        "type": "invalid_request_error",
        "message": "prompt is too long: 9 > 8",
    }


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"messages": None}, "messages: must be a list"),
        ({"messages": [{"role": "x"}]}, "messages[0].role: 'x' is not supported"),
        ({"messages": [{"role": "user"}]}, "messages[0].content: must be a list"),
        (
            {"messages": [{"role": "user", "content": [{"type": "x"}]}]},
            "messages[0].content[0].type: 'x' is not supported",
        ),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": 1}]}]},
            "messages[0].content[0].input: must be an object, not int",
        ),
        (
            {"messages": [{"role": "user", "content": [{**PNG, "source": {"type": "file"}}]}]},
            "messages[0].content[0].source.type: 'file' is not supported",
        ),
        ({"system": 1}, "system: must be a list, not int"),
        ({"system": [{"type": "text"}]}, "system[0].text: must be a string"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema: must be an object"),
        ({"output_config": {"format": {"type": "x"}}}, "output_config.format.type: 'x'"),
    ],
)
def test_a_bad_body_is_refused(fields, problem):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        MESSAGES.to_chat({**BODY, **fields})
    assert str(caught.value).startswith(problem)
