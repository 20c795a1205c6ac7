"""Responses: what Codex sends, what else may be sent, and what is answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.dialects import call, parsed, reply, stream

from rollout.gateway.dialects import DIALECTS
from rollout.types import Usage

RESPONSES = DIALECTS["responses"]
CODEX = json.loads((Path(__file__).parent / "data" / "codex_request.json").read_text())
IMAGE = "data:image/png;base64,AA=="


def messages(*items, **fields):
    return RESPONSES.to_chat({"input": list(items), **fields})[0]["messages"]


def said(*items):
    return messages({"role": "user", "content": "x"}, *items)[1:]


def function(name, **fields):
    return {"type": "function", "name": name, "parameters": {"type": "object"}, **fields}


def answer(message, finish="stop", **fields):
    body = {"input": "hi", "model": "m", **fields}
    return RESPONSES.from_chat(reply(message, finish), body, RESPONSES.to_chat(body)[1])


def test_a_request_of_codex():
    chat, _ = RESPONSES.to_chat(CODEX)
    assert chat.keys() == {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
    }
    assert [tool["function"]["name"] for tool in chat["tools"]] == [
        "exec_command",
        "apply_patch",
        "mcp__wx__get_picture",
        "mcp__wx__get_weather",
    ]
    assert [message["role"] for message in chat["messages"][:3]] == ["system", "user", "user"]
    parallel = chat["messages"][3]
    assert (parallel["content"], parallel["reasoning_content"]) == ("let me look", "think\nfirst")
    assert [made["id"] for made in parallel["tool_calls"]] == ["call_0", "call_1"]
    assert chat["messages"][5]["content"] == "Wall time: 0.1 seconds\nOutput:\nsunny"


def test_plain_input_and_instructions():
    body = {"input": "hi", "instructions": "Be brief."}
    assert RESPONSES.to_chat(body)[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]


def test_leading_instructions_merge_and_later_ones_keep_their_place():
    parts = [{"type": "input_text", "text": "two"}, {"type": "input_text", "text": "three"}]
    found = messages(
        {"role": "system", "content": "one"},
        {"type": "message", "role": "developer", "content": parts},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": "late"},
        instructions="zero",
    )
    assert found == [
        {"role": "system", "content": "zero\n\none\n\ntwo\n\nthree"},
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "late"},
    ]


def test_parts_of_a_user_message():
    parts = [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": IMAGE, "detail": "low"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,AA==",
        },
    ]
    (message,) = messages({"role": "user", "content": parts})
    assert message["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
        },
    ]


def test_images_of_parallel_tool_outputs_follow_the_last_of_them():
    image = {"type": "input_image", "image_url": IMAGE}
    found = said(
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": [image]},
        {
            "type": "function_call_output",
            "call_id": "b",
            "output": [{"type": "input_text", "text": "two:"}, image, image],
        },
        {"role": "user", "content": "well?"},
    )
    assert [message["role"] for message in found] == ["assistant", "tool", "tool", "user", "user"][
        :4
    ]
    assert found[1]["content"] == "[attachment 1]"
    assert found[2]["content"] == "two:\n[attachment 2]\n[attachment 3]"
    texts = [part.get("text") for part in found[3]["content"]]
    assert texts == [
        "[attachment 1]",
        None,
        "[attachment 2]",
        None,
        "[attachment 3]",
        None,
        "well?",
    ]


def test_what_was_said_in_several_items_is_one_message():
    (message,) = said(
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}],
        },
        {"role": "assistant", "content": "c"},
        {"type": "custom_tool_call", "call_id": "1", "name": "p", "input": 'x"\né'},
    )
    assert message == {
        "role": "assistant",
        "content": "ab\n\nc",
        "reasoning_content": "hm",
        "tool_calls": [call("1", "p", '{"input": "x\\"\\né"}')],
    }


def test_encrypted_reasoning_of_others_is_left_out():
    item = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
    assert said(item, {"role": "user", "content": "hi"}) == [{"role": "user", "content": "hi"}]


def test_a_refusal_is_kept_apart():
    (message,) = said({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})
    assert message == {"role": "assistant", "content": "", "refusal": "no"}
    assert answer({"content": None, "refusal": "no"})["output"][0]["content"] == [
        {"type": "refusal", "refusal": "no"}
    ]


def test_fields_of_the_request():
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    chat, _ = RESPONSES.to_chat(
        {
            "input": "hi",
            "model": "m",
            "temperature": 0,
            "top_p": 0.5,
            "max_output_tokens": 9,
            "reasoning": {"effort": "low", "summary": "auto"},
            "text": {"format": schema, "verbosity": "low"},
            "store": False,
            "stream": True,
            "tools": [{"type": "web_search"}],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        }
    )
    del chat["messages"]
    assert chat == {
        "model": "m",
        "temperature": 0,
        "top_p": 0.5,
        "max_completion_tokens": 9,
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
        },
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("required", "required"),
        ({"type": "function", "name": "f"}, "f"),
        ({"type": "custom", "name": "c"}, "c"),
        ({"type": "function", "namespace": "ns", "name": "g"}, "ns__g"),
    ],
)
def test_tool_choice(choice, expected):
    space = {"type": "namespace", "name": "ns", "description": "", "tools": [function("g")]}
    tools = [function("f"), {"type": "custom", "name": "c"}, space]
    chat, _ = RESPONSES.to_chat({"input": "hi", "tools": tools, "tool_choice": choice})
    if expected != choice:
        expected = {"type": "function", "function": {"name": expected}}
    assert chat["tool_choice"] == expected


def test_names_that_are_too_long_or_taken_are_told_apart():
    long = "n" * 60
    space = {
        "type": "namespace",
        "name": "a",
        "description": "About a.",
        "tools": [function("b"), function(f"{long}_1"), function(f"{long}_2", description="two")],
    }
    body = {"input": "hi", "tools": [function("a__b"), space]}
    chat, names = RESPONSES.to_chat(body)
    functions = [tool["function"] for tool in chat["tools"]]
    flat = [made["name"] for made in functions]
    assert len(set(flat)) == 4
    assert max(map(len, flat)) <= 64
    assert [made["description"] for made in functions] == ["", "About a.", "", "two"]
    calls = [call(str(i), name, "{}") for i, name in enumerate(flat)]
    output = RESPONSES.from_chat(reply({"tool_calls": calls}), body, names)["output"]
    assert [(item.get("namespace"), item["name"]) for item in output] == [
        (None, "a__b"),
        ("a", "b"),
        ("a", f"{long}_1"),
        ("a", f"{long}_2"),
    ]
    # A later request without these tools (Codex's compaction) still has them in its history.
    alone = RESPONSES.to_chat({"input": output})[0]["messages"][0]["tool_calls"]
    assert [made["function"]["name"] for made in alone][2:] == flat[2:]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"input": "*** Begin"}', "*** Begin"),
        ("*** Begin", "*** Begin"),
        ('{"input": "a", "b": 1}', '{"input": "a", "b": 1}'),
        ('{"input": 1}', '{"input": 1}'),
    ],
)
def test_a_freeform_call(arguments, expected):
    calls = [call("1", "apply_patch", arguments)]
    tools = [{"type": "custom", "name": "apply_patch"}]
    (item,) = answer({"tool_calls": calls}, "tool_calls", tools=tools)["output"]
    assert (item["type"], item["input"], item["call_id"]) == ("custom_tool_call", expected, "1")


def test_a_reply():
    found = answer({"content": "hi", "reasoning": "hm", "tool_calls": [call("", "f", "{bad")]})
    assert [item["type"] for item in found["output"]] == ["reasoning", "message", "function_call"]
    assert found["output"][2]["arguments"] == "{bad"
    assert found["output"][2]["call_id"]
    assert (found["status"], found["incomplete_details"]) == ("completed", None)
    assert found["usage"] == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 107,
    }
    assert RESPONSES.usage(found) == Usage(prompt=100, completion=7)
    assert RESPONSES.finish(found) == "tool_calls"
    assert RESPONSES.finish(answer({"content": "hi"})) == "stop"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "max_output_tokens"), ("content_filter", "content_filter")],
)
def test_a_reply_cut_short(finish, reason):
    body = {"input": "hi"}
    found = answer({"content": "half"}, finish)
    assert (found["status"], found["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert RESPONSES.finish(found) == finish
    assert parsed(stream(RESPONSES, found, body))[-1]["type"] == "response.incomplete"


def test_ids_are_new_with_every_turn():
    first, second = ({"input": ["x"] * n} for n in (1, 2))
    ids = {
        json.dumps(parsed(RESPONSES.opening(body))[0]["response"]["id"]) for body in (first, second)
    }
    assert len(ids) == 2


def test_items_of_a_server_that_speaks_responses_itself_pass():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    native = {"id": "resp_theirs", "status": "completed", "output": [search]}
    events = parsed(stream(RESPONSES, native, {"input": "hi"}))
    assert events[-2]["item"] == search
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1


def test_errors():
    body = RESPONSES.error(400, "too long", "context_length_exceeded")
    assert body["error"]["code"] == "context_length_exceeded"
    (event,) = parsed(b"".join(RESPONSES.error_events("dead", "server_error", {"input": "hi"})))
    assert event["type"] == "response.failed"
    assert event["response"]["error"] == {"code": "server_error", "message": "dead"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"input": None}, "input: must be a list"),
        ({"input": [1]}, "input[0]: must be an object, not int"),
        ({"input": [{"type": "x"}]}, "input[0].type: 'x' is not supported"),
        ({"input": [{"role": "tool", "content": ""}]}, "input[0].role: 'tool'"),
        ({"input": [{"role": "user", "content": [{}]}]}, "input[0].content[0].type: must be"),
        (
            {"input": [{"role": "user", "content": [{"type": "x"}]}]},
            "input[0].content[0].type: 'x' is not supported",
        ),
        ({"input": [{"type": "function_call"}]}, "input[0].arguments: must be a string"),
        (
            {"input": [{"type": "function_call_output", "call_id": "1"}]},
            "input[0].output: must be a list, but it is missing",
        ),
        ({"tools": [{"type": "function"}]}, "tools[0].name: must be a string"),
        (
            {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "x"}]}]},
            "tools[0].tools[0].type: 'x'",
        ),
        ({"text": {"format": {"type": "x"}}}, "text.format.type: 'x'"),
        ({"tools": [function("f")], "tool_choice": {"type": "x"}}, "tool_choice.type: 'x'"),
        ({"previous_response_id": "r"}, "previous_response_id: nothing is kept"),
    ],
)
def test_a_bad_body_is_refused(fields, problem):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        RESPONSES.to_chat({"input": "hi", **fields})
    assert str(caught.value).startswith(problem)
