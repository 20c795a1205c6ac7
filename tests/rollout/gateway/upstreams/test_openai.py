"""The OpenAI-compatible upstream: what check() finds out, what a reply is reduced to."""

import json

import msgspec
import numpy as np
import pytest
from support.gateways import said, upstream_of
from support.scripted_server import Fail, Reply, ScriptedServer, text

from rollout.errors import UsageError
from rollout.gateway.upstream import ModelRequest, Refused, Transient
from rollout.gateway.upstreams._chat_reply import read_chat_reply
from rollout.gateway.upstreams._errors import error_of
from rollout.gateway.upstreams.openai import OpenAI
from rollout.types import Task, Usage


def request(text="hi", dialect="chat", **more):
    return ModelRequest(dialect, said(text, dialect, **more), Task(id="t", prompt="p"))


def read(body, **options):
    return read_chat_reply(msgspec.json.encode(body), {}, **options)


async def checked(*arguments):
    upstream = OpenAI(*arguments)
    try:
        await upstream.check()
    finally:
        await upstream.close()
    return upstream


async def test_check_learns_window_and_dialects():
    async with ScriptedServer(context_window=4096, dialects=("responses",)) as server:
        upstream = await checked("scripted", server.url + "/")
    assert upstream.context_window == 4096
    assert upstream.dialects == {"chat", "responses"}
    assert server.requests == []
    assert upstream.fingerprint()["base_url"] == server.url


async def test_where_tokens_are_told_everything_is_asked_as_chat():
    async with ScriptedServer(owned_by="vllm", dialects=("responses", "messages")) as server:
        upstream = await checked("scripted", server.url)
    assert upstream.dialects == {"chat"}


async def test_check_says_what_is_wrong():
    async with ScriptedServer(model="qwen3-8b", key="right") as server:
        with pytest.raises(UsageError, match=r"no model 'qwen-8b'; nearest: qwen3-8b"):
            await checked("qwen-8b", server.url, "right")
        with pytest.raises(UsageError, match=r"refuses the key in OPENAI_API_KEY \(HTTP 401\)"):
            await checked("qwen3-8b", server.url, "wrong")
        with pytest.raises(UsageError, match=r"wants a key: set OPENAI_API_KEY"):
            await checked("qwen3-8b", server.url)
        with pytest.raises(UsageError, match=r"HTTP 404.*usually ends in /v1"):
            await checked("qwen3-8b", server.url.removesuffix("/v1"), "right")
        url = server.url
    with pytest.raises(UsageError, match=r"no model server answers at .*/models .*start it"):
        await checked("qwen3-8b", url)


def test_from_spec(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    upstream = OpenAI.from_spec("gpt-5", "")
    assert (upstream.model, upstream.base_url) == ("gpt-5", "https://api.openai.com/v1")
    assert "sk-1" not in json.dumps(upstream.fingerprint())
    with pytest.raises(UsageError, match="openai:NAME"):
        OpenAI.from_spec("", "")
    with pytest.raises(UsageError, match="http://"):
        OpenAI.from_spec("m", "localhost:8000")


async def test_the_key_is_sent():
    async with ScriptedServer(key="right") as server:
        upstream = await upstream_of(server)
        await upstream.complete(request())
        await upstream.close()
    assert server.requests[0].headers["Authorization"] == "Bearer right"


async def test_tokens_are_no_longer_asked_for_once_that_alone_is_refused():
    async with ScriptedServer(owned_by="sglang") as server:
        upstream = await upstream_of(server)
        server.queue(Fail(400, "extra field: return_token_ids"))
        for _ in range(2):
            assert (await upstream.complete(request())).finish == "stop"
        await upstream.close()
    assert ["return_token_ids" in r.body for r in server.requests] == [True, False, False]


async def test_a_call_that_is_refused_either_way_proves_nothing():
    async with ScriptedServer(owned_by="vllm") as server:
        upstream = await upstream_of(server)
        server.queue(Fail(400, "bad"), Fail(400, "bad"), text("ok", ids=([1], [2])), Fail(400, "x"))
        with pytest.raises(Refused):
            await upstream.complete(request())
        assert (await upstream.complete(request())).response_ids
        with pytest.raises(Refused):
            await upstream.complete(request())
        await upstream.close()
    asked = ["return_token_ids" in r.body for r in server.requests]
    assert asked == [True, False, True, True]


async def test_count_tokens():
    async with ScriptedServer(token_count=11) as counting, ScriptedServer() as plain:
        for server, expected in ((counting, 11), (plain, 9)):
            upstream = await upstream_of(server)
            body = {"messages": [{"role": "user", "content": "hi"}]}
            counted = await upstream.count_tokens(body)
            await upstream.close()
            assert counted == expected


async def test_what_the_prompt_is_rendered_from_is_what_is_counted():
    reply = {"role": "assistant", "content": "a", "reasoning_content": "because"}
    body = {
        "messages": [{"role": "user", "content": "q"}, reply],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "chat_template_kwargs": {"enable_thinking": False},
    }
    async with ScriptedServer(token_count=3) as server:
        upstream = await upstream_of(server)
        await upstream.count_tokens({"model": "other", "max_tokens": 5, **body})
        await upstream.close()
    (asked,) = server.counted
    assert asked["messages"][1]["reasoning"] == "because"  # the one name that `/tokenize` knows
    del asked["messages"][1]["reasoning"]
    assert asked == {"model": "scripted", **body}


def test_only_what_clients_know_survives():
    body = text("hi", ids=([1, 2], [3])).body
    reply = read(body)
    assert set(reply.body) == {"id", "object", "created", "model", "choices", "usage"}
    (choice,) = reply.body["choices"]
    assert choice == {
        "index": 0,
        "message": {"role": "assistant", "content": "hi"},
        "logprobs": None,
        "finish_reason": "stop",
    }
    kept = read(body, keep_logprobs=True)
    assert kept.body["choices"][0]["logprobs"] == body["choices"][0]["logprobs"]


def test_tokens_as_sglang_names_them():
    message = {"role": "assistant", "content": "hi", "reasoning_content": None}
    ids = {"prompt_token_ids": [1, 2], "response_token_ids": [3]}
    logprobs = {"content": [{"token": "t", "logprob": -1.5, "bytes": [], "top_logprobs": []}]}
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop"}
    reply = read({"id": "1", "model": "m", "choices": [choice | ids | {"matched_stop": 7}]})
    assert np.frombuffer(reply.prompt_ids, "<i4").tolist() == [1, 2]
    assert np.frombuffer(reply.response_ids, "<i4").tolist() == [3]
    assert np.frombuffer(reply.logprobs, "<f4").tolist() == [-1.5]
    assert "matched_stop" not in reply.body["choices"][0]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_under_either_name(field):
    message = {"content": "a", field: "because"}
    reply = read({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert reply.body["choices"][0]["message"]["reasoning_content"] == "because"
    assert "reasoning" not in reply.body["choices"][0]["message"]


def test_logprobs_that_do_not_match_the_tokens_are_dropped():
    body = json.loads(json.dumps(text("hi", ids=([1], [2, 3])).body))
    body["choices"][0]["logprobs"]["content"].pop()
    reply = read(body)
    assert np.frombuffer(reply.response_ids, "<i4").tolist() == [2, 3]
    assert reply.logprobs == b""


def test_tokens_are_counted_where_the_server_does_not():
    body = dict(text("hi", ids=([1, 2], [3])).body) | {"usage": None}
    assert read(body).usage == Usage(prompt=2, completion=1)


@pytest.mark.parametrize(
    "told", [{"weight_version": 7}, {"metadata": {"weight_version": "7"}}, {"weight_version": "7"}]
)
def test_weight_versions(told):
    assert read(dict(text("a").body) | told).weights == "7"
    payload = msgspec.json.encode(text("a").body)
    assert read_chat_reply(payload, {"x-weight-version": "8"}).weights == "8"


def test_a_reply_that_calls_tools_ends_in_tool_calls():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "tool_calls": [call]}
    assert read({"choices": [{"message": message, "finish_reason": "stop"}]}).finish == "tool_calls"


def test_errors_by_status():
    for status in (408, 409, 425, 429, 500, 502, 503, 504, 529):
        assert isinstance(error_of(status, {}, b"busy"), Transient)
    for status in (400, 401, 403, 404, 413, 422):
        error = error_of(status, {}, b'{"detail": "no"}')
        assert isinstance(error, Refused)
        assert error.status == status
    assert error_of(429, {"Retry-After": "7"}, b"").retry_after == 7.0
    assert error_of(429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"").retry_after == 0.0
    assert error_of(429, {"Retry-After": "soon"}, b"").retry_after == 0.0
    assert error_of(400, {}, b'{"message": "old vLLM", "object": "error"}').args == ("old vLLM",)


async def test_foreign_dialects_are_checked_too():
    async with ScriptedServer(dialects=("responses", "messages")) as server:
        upstream = await upstream_of(server)
        server.queue(Reply({"status": "failed", "output": []}), Reply({"error": "x"}))
        for dialect in ("responses", "messages"):
            with pytest.raises(Transient, match="the reply has no"):
                await upstream.complete(request(dialect=dialect))
        await upstream.close()


def chatted(usage=None, finish="stop", **message):
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"choices": [choice], "usage": usage}


def test_calls_that_servers_write_in_their_own_ways_come_out_alike():
    named = {"name": "send", "arguments": '{"a": 1}'}
    calls = [
        {"id": "c", "function": named},
        {"id": "c", "function": named},
        {"id": "", "function": {"name": "send", "arguments": {"a": 1}}},
        {"function": {"name": "send", "arguments": None}, "extra_content": {"kept": True}},
    ]
    [choice] = read(chatted(tool_calls=calls)).body["choices"]
    found = choice["message"]["tool_calls"]
    assert len({call["id"] for call in found}) == 4
    assert all(call["id"] and call["type"] == "function" for call in found)
    arguments = [json.loads(call["function"]["arguments"] or "null") for call in found]
    assert arguments == [{"a": 1}, {"a": 1}, {"a": 1}, None]
    assert found[3]["extra_content"] == {"kept": True}


@pytest.mark.parametrize("call", [{}, {"function": {}}, {"function": {"name": None}}])
def test_a_call_that_names_no_function_is_nonsense(call):
    with pytest.raises(Transient, match="names no function"):
        read(chatted(tool_calls=[{"id": "c", **call}]))


def test_content_in_parts_is_one_text_and_an_unknown_finish_a_stop():
    reply = read(chatted(content=[{"type": "text", "text": "a"}, {"text": "b"}], finish="eos"))
    assert (reply.body["choices"][0]["message"]["content"], reply.finish) == ("ab", "stop")
    with pytest.raises(Transient, match=r"content"):
        read(chatted(content=5))


@pytest.mark.parametrize("odd", ["many", -5, 10**30, None, [1], True])
def test_usage_that_is_no_count_is_none(odd):
    told = {"prompt_tokens": odd, "completion_tokens": 2.0, "prompt_tokens_details": odd}
    reply = read(chatted(told, content="a"))
    assert reply.usage == Usage(prompt=int(odd is True), completion=2)
    assert reply.body["usage"]["completion_tokens"] == 2
    assert "prompt_tokens_details" not in reply.body["usage"]


def test_ids_that_are_none_are_nonsense():
    with pytest.raises(Transient, match=r"prompt_token_ids\[0\]"):
        read({**chatted(content="a"), "prompt_token_ids": [2**31]})


async def test_a_reply_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr("rollout.gateway.upstreams.openai.REPLY_LIMIT", 2**20)
    async with ScriptedServer() as server:
        upstream = await upstream_of(server)
        server.queue(text("x" * 2**21))
        with pytest.raises(Transient, match="longer than 1 MiB"):
            await upstream.complete(request())
        await upstream.close()
