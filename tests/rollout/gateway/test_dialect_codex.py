"""The Responses dialect against the real Codex: what it sends is understood, what we answer is obeyed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from support.codex_stub import PNG, Stub, run_codex

from rollout.gateway.dialects import DIALECTS

DIALECT = DIALECTS["responses"]
RECORDED = Path(__file__).parent / "data" / "codex_request.json"
PATCH = "*** Begin Patch\n*** Add File: a.txt\n+Grüße\n*** End Patch\n"


def chat(content=None, reasoning=None, finish=None, calls=()):
    message = {"role": "assistant", "content": content}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [
            {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
            for key, name, arguments in calls
        ]
    finish = finish or ("tool_calls" if calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 7}}


SHELL = ("call_0", "exec_command", '{"cmd": "echo hi"}')
SCRIPT = [
    chat(
        "let me look",
        "think\nfirst",
        calls=[SHELL, ("call_1", "mcp__wx__get_weather", '{"city": "Bern"}')],
    ),
    chat(
        None,
        "now patch",
        calls=[("call_2", "apply_patch", json.dumps({"input": PATCH}, ensure_ascii=False))],
    ),
    chat(None, calls=[("call_3", "mcp__wx__get_picture", "{}")]),
    chat(None, calls=[("call_4", "exec_command", "{bad json"), ("call_5", "unknown", "{}")]),
    chat("done", "that was all"),
]


async def keep_alive(turn, stream, body):
    """25 events while the model thinks, for longer than Codex waits for a silent stream."""
    for _ in range(25 if turn == 1 else 0):
        await stream.write(DIALECT.keep_alive(body))
        await asyncio.sleep(0.15)


def shapes(items):
    return {(item["type"], *sorted(item)) for item in items}


async def test_codex_works_through_the_dialect(tmp_path):
    stub = Stub(SCRIPT, keep_alive)
    code, events = await run_codex(stub, tmp_path, idle_ms=3000)
    assert code == 0, events
    assert len(stub.bodies) == len(SCRIPT)
    assert events[-1]["usage"]["input_tokens"] == 100 * len(SCRIPT)
    messages = [event["item"] for event in events if event["type"] == "item.completed"]
    assert [item["text"] for item in messages if item["type"] == "agent_message"] == [
        "let me look",
        "done",
    ]
    assert (tmp_path / "work" / "a.txt").read_text() == "Grüße\n"
    _check_history(stub.chats[-1]["messages"])
    _check_tools(stub.chats[-1]["tools"])
    _check_recorded(stub.bodies[-1])


def _check_history(messages):
    said = [message for message in messages if message["role"] == "assistant"]
    assert said == [reply["choices"][0]["message"] for reply in SCRIPT[:-1]]
    heard = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert heard["call_0"].endswith("Output:\nhi\n")
    assert heard["call_1"].endswith("Output:\nsunny")
    assert "Success" in heard["call_2"]
    assert heard["call_3"].endswith("the sky:\n[attachment 1]")
    assert heard["call_4"].startswith("failed to parse function arguments")
    assert heard["call_5"] == "unsupported call: unknown"
    place = next(i for i, m in enumerate(messages) if m.get("tool_call_id") == "call_3")
    image = messages[place + 1]["content"][1]["image_url"]["url"]
    assert (messages[place + 1]["role"], image) == ("user", f"data:image/png;base64,{PNG}")
    assert [m["role"] for m in messages[:3]] == ["system", "user", "user"]
    assert messages[2]["content"] == "Do it"


def _check_tools(tools):
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    assert {"exec_command", "apply_patch", "mcp__wx__get_weather"} <= functions.keys()
    assert functions["apply_patch"]["parameters"]["required"] == ["input"]
    assert "begin_patch" in functions["apply_patch"]["description"]
    assert "Ask here for the weather." in "".join(f["description"] for f in functions.values())


def _check_recorded(body):
    """The request that the other tests use has the shape of today's."""
    recorded = json.loads(RECORDED.read_text())
    assert shapes(recorded["input"]) == shapes(body["input"])
    assert recorded.keys() == body.keys()
    assert shapes(recorded["tools"]) == shapes(body["tools"])


async def test_codex_takes_an_error_in_the_stream(tmp_path):
    async def fail(turn, stream, body):
        for event in DIALECT.error_events("too long", "context_length_exceeded", body):
            await stream.write(event)
        return True

    stub = Stub([], fail)
    code, events = await run_codex(stub, tmp_path)
    assert (code, len(stub.bodies)) == (1, 1)
    assert events[-1]["type"] == "turn.failed"
    assert "context window" in events[-1]["error"]["message"]


async def test_codex_is_told_of_a_reply_cut_short(tmp_path):
    stub = Stub([chat("half an ans", finish="length")])
    code, events = await run_codex(stub, tmp_path)
    assert (code, len(stub.bodies)) == (1, 1)
    assert "max_output_tokens" in events[-1]["error"]["message"]
