"""Conversations for SFT, from each dialect, without any token ids."""

from typing import Any

import msgspec
import pytest
from support.traces import episode, trace

from rollout.gateway.dialects import DIALECTS
from rollout.types import Call, DialectName, JsonObject
from train.sft_rows import SftRow, sft_rows, template_of

SYSTEM = "You are an agent."
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}


def chat_reply(
    text: str, thought: str = "", calls: list[tuple[str, str]] | None = None
) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": text or None}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": "weather", "arguments": arguments}}
            for i, arguments in calls
        ]
    finish = "tool_calls" if calls else "stop"
    return {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def request(dialect: DialectName, history: list[JsonObject]) -> JsonObject:
    if dialect == "responses":
        tool = {"type": "function", "name": "weather", "parameters": TOOL}
        return {"model": "m", "instructions": SYSTEM, "input": history, "tools": [tool]}
    if dialect == "messages":
        tool = {"name": "weather", "input_schema": TOOL}
        return {
            "model": "m",
            "system": SYSTEM,
            "messages": history,
            "tools": [tool],
            "max_tokens": 9,
        }
    tool = {"type": "function", "function": {"name": "weather", "parameters": TOOL}}
    system = {"role": "system", "content": SYSTEM}
    return {"model": "m", "messages": [system, *history], "tools": [tool]}


def said_back(dialect: DialectName, reply: JsonObject, reasoning: bool) -> list[JsonObject]:
    """The reply as the harness sends it back, with or without the reasoning."""
    if dialect == "responses":
        return [item for item in reply["output"] if reasoning or item["type"] != "reasoning"]
    if dialect == "messages":
        blocks = [b for b in reply["content"] if reasoning or b["type"] != "thinking"]
        return [{"role": "assistant", "content": blocks}]
    message = reply["choices"][0]["message"]
    kept = {k: v for k, v in message.items() if reasoning or k != "reasoning_content"}
    return [dict(reversed(kept.items()))]  # another order of keys, as other JSON writers have it


def told(dialect: DialectName, call_id: str, output: str) -> JsonObject:
    if dialect == "responses":
        return {"type": "function_call_output", "call_id": call_id, "output": output}
    if dialect == "messages":
        block = {"type": "tool_result", "tool_use_id": call_id, "content": output}
        return {"role": "user", "content": [block]}
    return {"role": "tool", "tool_call_id": call_id, "content": output}


class Desk:
    """Asks for the weather in as many turns as it is given replies."""

    def __init__(self, dialect: DialectName, *, reasoning: bool = True) -> None:
        self.dialect = dialect
        self.reasoning = reasoning
        self.history: list[JsonObject] = [{"role": "user", "content": "Weather in Oslo?"}]
        self.calls: list[Call] = []

    def ask(self, reply: JsonObject, **more: Any) -> None:
        dialect = DIALECTS[self.dialect]
        body = request(self.dialect, self.history)
        _, memory = dialect.to_chat(body)
        answer = dialect.from_chat(reply, body, memory)
        fields = {"kind": "main", "dialect": self.dialect, "index": len(self.calls)} | more
        encode = msgspec.json.encode
        self.calls.append(Call(request=encode(body), reply=encode(answer), **fields))
        self.history = [*self.history, *said_back(self.dialect, answer, self.reasoning)]

    def hear(self, call_id: str, output: str) -> None:
        self.history = [*self.history, told(self.dialect, call_id, output)]


def two_turns(dialect: DialectName, *, reasoning: bool = True) -> Desk:
    desk = Desk(dialect, reasoning=reasoning)
    desk.ask(chat_reply("Let me look.", "Which city? Oslo.", [("c1", '{"city": "Oslo"}')]))
    desk.hear("c1", "rain")
    desk.ask(chat_reply("It rains.", "Rain it is."))
    return desk


def rows_of(desk: Desk, **more: Any) -> list[SftRow]:
    rows, report = sft_rows(episode(), trace(*desk.calls), **more)
    assert report.rows == len(rows)
    return rows


DIALECT_NAMES = ("chat", "responses", "messages")


@pytest.mark.parametrize("reasoning", [True, False])
@pytest.mark.parametrize("dialect", DIALECT_NAMES)
def test_a_conversation_is_one_row_as_it_was_said(dialect: DialectName, reasoning: bool) -> None:
    """Also where the harness does not send the reasoning back."""
    [row] = rows_of(two_turns(dialect, reasoning=reasoning))
    assert [message["role"] for message in row.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert row.trained == [2, 4]
    assert row.messages[0]["content"] == SYSTEM
    first = row.messages[2]
    assert (first["content"], first["reasoning_content"]) == ("Let me look.", "Which city? Oslo.")
    [asked] = first["tool_calls"]
    assert asked["function"] == {"name": "weather", "arguments": '{"city": "Oslo"}'}
    assert row.messages[3]["tool_call_id"] == asked["id"]
    assert row.messages[4]["reasoning_content"] == "Rain it is."
    assert row.reward == 1.0
    messages, tools = template_of(msgspec.to_builtins(row))
    assert messages[2]["tool_calls"][0]["function"]["arguments"] == {"city": "Oslo"}
    assert tools[0]["function"]["parameters"] == TOOL
    assert "tool_calls" not in messages[4]


@pytest.mark.parametrize("dialect", DIALECT_NAMES)
def test_a_shared_beginning_is_trained_in_one_row_only(dialect: DialectName) -> None:
    desk = two_turns(dialect)
    end = desk.history
    desk.history = [*end, {"role": "user", "content": "And in Bergen?"}]
    desk.ask(chat_reply("Rain."))
    desk.history = [*end, {"role": "user", "content": "Title?"}]
    desk.ask(chat_reply("Weather"), kind="side")
    rows = rows_of(desk)
    assert [(row.kind, len(row.trained)) for row in rows] == [("main", 3), ("side", 1)]
    assert rows[1].trained == [len(rows[1].messages) - 1]
    assert len(rows_of(desk, calls="agents")) == 1


@pytest.mark.parametrize("dialect", DIALECT_NAMES)
def test_a_shortened_history_begins_another_row(dialect: DialectName) -> None:
    desk = two_turns(dialect)
    desk.history = [{"role": "user", "content": "Summary: it rains in Oslo."}]
    desk.ask(chat_reply("Fine."))
    assert [row.trained for row in rows_of(desk)] == [[2, 4], [2]]


def test_retries_and_refusals_and_silence_are_counted() -> None:
    desk = two_turns("chat")
    again = desk.calls[-1]
    refused = msgspec.structs.replace(again, status=400, reply=b'{"error":{}}')
    silent = msgspec.structs.replace(
        again, reply=msgspec.json.encode(chat_reply("", "Thinking only."))
    )
    broken = msgspec.structs.replace(again, request=b'{"messages":[{"content":"?"}]}')
    rows, report = sft_rows(episode(), trace(*desk.calls, again, refused, silent, broken))
    assert len(rows) == 1
    assert report.calls == 6
    assert (report.retries, report.refused, report.silent, report.unreadable) == (1, 1, 1, 1)


def test_images_stand_in_the_text_and_beside_it() -> None:
    desk = Desk("chat")
    url = "data:image/png;base64,AAAA"
    image = {"type": "image_url", "image_url": {"url": url}}
    desk.history = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]
    desk.ask(chat_reply("A cat."))
    [row] = rows_of(desk)
    assert row.messages[1]["content"] == "What is it?\n<image>"
    assert row.images == [url]


def test_what_text_and_images_can_not_hold_is_left_out_and_counted() -> None:
    desk = Desk("chat")
    sound = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
    desk.history = [{"role": "user", "content": [sound]}]
    desk.ask(chat_reply("Hm."))
    rows, report = sft_rows(episode(), trace(*desk.calls))
    assert rows == []
    assert report.unreadable == 1


def test_a_reply_that_continues_an_assistant_message_is_trained_with_it() -> None:
    """Responses keeps them apart, chat templates want one message a turn."""
    desk = Desk("responses")
    desk.ask(chat_reply("First,"))
    desk.ask(chat_reply("then."))
    rows, report = sft_rows(episode(), trace(*desk.calls))
    [row] = rows
    assert row.messages[-1]["content"] == "First,\n\nthen."
    assert row.trained == [2]
    assert report.unplaced == 1


def test_a_refusal_is_what_the_model_said() -> None:
    desk = Desk("responses")
    reply = chat_reply("")
    reply["choices"][0]["message"]["refusal"] = "I can't."
    desk.ask(reply)
    [row] = rows_of(desk)
    assert row.messages[-1]["content"] == "I can't."
    assert row.trained == [2]
