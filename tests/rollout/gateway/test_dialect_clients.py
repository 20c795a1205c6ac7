"""The dialects against the official client libraries, over real HTTP."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from anthropic import APIStatusError, AsyncAnthropic
from openai import APIError, AsyncOpenAI
from support.dialects import call, reply

from rollout.gateway.dialects import DIALECTS

SAID = reply(
    {
        "content": "Grüße",
        "reasoning_content": "hm",
        "tool_calls": [call("1", "f", '{"a": [1, "é"]}'), call("2", "f", "{}")],
    },
    "tool_calls",
)
CALLS = [("f", {"a": [1, "é"]}), ("f", {})]
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {}}}
SAY = [{"role": "user", "content": "hi"}]


@asynccontextmanager
async def serving(name, error=""):
    """A server of one dialect that always gives the same answer, streamed or not."""
    dialect = DIALECTS[name]

    async def handle(request):
        body = await request.json()
        _, memory = dialect.to_chat(body)
        answer = dialect.from_chat(SAID, body, memory)
        if not body.get("stream"):
            return web.json_response(answer)
        events = dialect.error_events(error, "x", body) if error else dialect.events(answer, body)
        data = dialect.opening(body) + dialect.keep_alive(body) + b"".join(events)
        return web.Response(body=data, content_type="text/event-stream")

    app = web.Application()
    app.router.add_post(f"/v1{dialect.path}", handle)
    async with TestServer(app) as server:
        yield str(server.make_url("/")).rstrip("/")


@asynccontextmanager
async def openai(name, error=""):
    async with (
        serving(name, error) as url,
        AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client,
    ):
        yield client


@asynccontextmanager
async def anthropic(error=""):
    async with (
        serving("messages", error) as url,
        AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client,
    ):
        yield client


async def test_chat():
    async with openai("chat") as client:
        tools = [{"type": "function", "function": FUNCTION}]
        asked = {"model": "m", "messages": SAY, "tools": tools}
        whole = await client.chat.completions.create(**asked)
        usage = {"include_usage": True}
        async with client.chat.completions.stream(**asked, stream_options=usage) as stream:
            final = await stream.get_final_completion()
    for found in (whole, final):
        message = found.choices[0].message
        assert (message.content, message.reasoning_content) == ("Grüße", "hm")
        assert [made.function.name for made in message.tool_calls] == ["f", "f"]
        assert found.usage.prompt_tokens == 100


async def test_responses():
    async with openai("responses") as client:
        asked = {"model": "m", "input": "hi", "tools": [{"type": "function", **FUNCTION}]}
        whole = await client.responses.create(**asked)
        async with client.responses.stream(**asked) as stream:
            final = await stream.get_final_response()
    assert whole.output_text == final.output_text == "Grüße"
    assert whole.output[0] == final.output[0]
    assert [item.arguments for item in final.output[2:]] == ['{"a": [1, "é"]}', "{}"]
    assert whole.usage == final.usage


async def test_messages():
    async with anthropic() as client:
        asked = {"model": "m", "max_tokens": 9, "messages": SAY}
        whole = await client.messages.create(**asked)
        async with client.messages.stream(**asked) as stream:
            final = await stream.get_final_message()
    for found in (whole, final):
        thinking, said, *uses = found.content
        assert (thinking.thinking, said.text) == ("hm", "Grüße")
        assert [(use.name, use.input) for use in uses] == CALLS
        assert (found.stop_reason, found.usage.cache_read_input_tokens) == ("tool_use", 60)


async def test_errors_in_a_stream_reach_the_caller():
    async with openai("chat", "dead") as client:
        with pytest.raises(APIError, match="dead"):
            async with client.chat.completions.stream(model="m", messages=SAY) as stream:
                await stream.until_done()
    async with openai("responses", "dead") as client:
        async with client.responses.stream(model="m", input="hi") as stream:
            events = [event async for event in stream]
    assert events[-1].response.error.message == "dead"
    async with anthropic("dead") as client:
        with pytest.raises(APIStatusError, match="dead"):
            async with client.messages.stream(model="m", max_tokens=9, messages=SAY) as stream:
                await stream.until_done()
