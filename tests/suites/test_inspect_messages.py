"""Recorded conversations of every dialect as one row of chat messages."""

import json

import pytest

from rollout.types import Call, Trace
from suites.command.inspect_messages import conversation

ARGUMENTS = {"to": "ann@example.org"}
SENT = {"role": "tool", "content": "sent", "tool_call_id": "c1", "function": "send"}
CHAT = (
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Write to Ann."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "send", "arguments": json.dumps(ARGUMENTS)},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "sent"},
        ]
    },
    {"choices": [{"message": {"role": "assistant", "content": "Done."}}]},
)
RESPONSES = (
    {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Write to Ann."}]},
            {
                "type": "function_call",
                "call_id": "c1",
                "name": "send",
                "arguments": json.dumps(ARGUMENTS),
            },
            {"type": "function_call_output", "call_id": "c1", "output": "sent"},
        ],
    },
    {
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Done."}],
            }
        ]
    },
)
MESSAGES = (
    {
        "model": "m",
        "max_tokens": 10,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Write to Ann."},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "send", "input": ARGUMENTS}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "sent"}],
            },
        ],
    },
    {"content": [{"type": "text", "text": "Done."}]},
)


def call(dialect: str, request: object, reply: object, **fields) -> Call:
    fields = {"index": 0, "kind": "main", **fields}
    request, reply = json.dumps(request).encode(), json.dumps(reply).encode()
    return Call(dialect=dialect, request=request, reply=reply, **fields)


def text(message: dict) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize(
    ("dialect", "exchange"), [("chat", CHAT), ("responses", RESPONSES), ("messages", MESSAGES)]
)
def test_every_dialect_reads_the_same(dialect, exchange):
    found = conversation(Trace(calls=(call(dialect, *exchange),)), "Write to Ann.")
    assert [message["role"] for message in found] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [text(message) for message in found] == [
        "Be brief.",
        "Write to Ann.",
        "",
        "sent",
        "Done.",
    ]
    (asked,) = found[2]["tool_calls"]
    assert (asked["id"], asked["function"], asked["arguments"]) == ("c1", "send", ARGUMENTS)
    assert (found[3]["tool_call_id"], found[3]["function"]) == ("c1", "send")


def test_the_last_main_call_that_was_answered_counts():
    side = call("chat", {"messages": []}, {"choices": []}, index=1, kind="side")
    failed = call("chat", {"messages": []}, {"error": {}}, index=2, status=500)
    found = conversation(Trace(calls=(call("chat", *CHAT), side, failed)), "Write to Ann.")
    assert found[-1]["content"] == "Done."


def test_reasoning_images_and_broken_arguments():
    request = {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                    {"type": "input_audio", "input_audio": {}},
                ],
            }
        ]
    }
    broken = {"id": "c1", "type": "function", "function": {"name": "send", "arguments": '{"to"'}}
    message = {
        "role": "assistant",
        "content": "Hm.",
        "reasoning_content": "An image.",
        "tool_calls": [broken],
    }
    reply = {"choices": [{"message": message}]}
    user, assistant = conversation(Trace(calls=(call("chat", request, reply),)), "")
    assert [part["type"] for part in user["content"]] == ["text", "image", "text"]
    assert assistant["content"][0] == {"type": "reasoning", "reasoning": "An image."}
    assert assistant["tool_calls"][0]["arguments"] == {"arguments": '{"to"'}
    assert assistant["tool_calls"][0]["parse_error"]


@pytest.mark.parametrize(
    ("request_body", "reply"),
    [(None, None), ([], {}), ({"messages": 3}, {}), ({"messages": [7]}, CHAT[1]), (CHAT[0], {})],
)
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_what_makes_no_sense_becomes_prompt_and_answer(dialect, request_body, reply):
    odd = call(dialect, request_body, reply)
    found = conversation(Trace(calls=(odd,), answer="Done."), "Write to Ann.")
    assert [message["content"] for message in found] == ["Write to Ann.", "Done."]
    assert len(conversation(Trace(), "Write to Ann.")) == 1


def test_recorded_pictures_are_named_and_others_shown():
    digest = "ab" * 32
    urls = [f"data:image/png;base64,sha256:{digest}", "data:image/png;base64,AAAA"]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    request = {"messages": [{"role": "user", "content": parts}]}
    reply = {"choices": [{"message": {"role": "assistant", "content": "Done."}}]}
    call = Call(
        index=0,
        dialect="chat",
        kind="main",
        request=json.dumps(request).encode(),
        reply=json.dumps(reply).encode(),
    )
    [user, _] = conversation(Trace(calls=(call,)), "")
    assert user["content"] == [
        {"type": "text", "text": f"[picture {digest}: traces.zst holds it]"},
        {"type": "image", "image": urls[1]},
    ]
