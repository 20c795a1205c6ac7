"""A model call through the gateway: answered, recorded, forced, limited."""

import asyncio
import io
import json
from base64 import b64encode

import aiohttp
import msgspec
import numpy as np
import pytest
from support.gateways import PATHS, connected, episode, said
from support.scripted_server import Fail, Reply, ScriptedServer, Stall, text, tool_call

from rollout.gateway.session import Stop
from rollout.pictures import data_url, put_back
from rollout.types import Image, Task, Usage

ALL = ("chat", "responses", "messages")


async def test_a_call_is_answered_and_recorded():
    async with ScriptedServer() as server, episode(server) as client:
        status, reply = await client.ask(said("hi"))
        (call,) = client.session.calls
    assert status == 200
    assert reply["choices"][0]["message"]["content"] == "ok"
    assert json.loads(call.request) == said("hi")
    assert json.loads(call.reply) == reply
    assert (call.index, call.dialect, call.kind, call.status) == (0, "chat", "main", 200)
    assert (call.tries, call.finish, call.model) == (1, "stop", "scripted")
    assert call.usage == client.session.usage == Usage(prompt=10, completion=2)
    assert call.seconds >= call.upstream_seconds > 0


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("stream", [False, True])
async def test_every_dialect_streamed_and_not(dialect, stream):
    async with ScriptedServer() as server, episode(server) as client:
        server.queue(text("the answer"))
        status, reply = await client.ask(said("hi", dialect, stream=stream), dialect)
        (call,) = client.session.calls
    assert status == 200
    assert "the answer" in (reply if stream else json.dumps(reply))
    assert "the answer" in call.reply.decode()
    assert json.loads(call.request)["stream"] is stream
    assert server.requests[0].path == "/v1/chat/completions"
    assert "stream" not in server.requests[0].body


@pytest.mark.parametrize("dialect", ["responses", "messages"])
async def test_a_dialect_that_the_server_speaks_passes_through(dialect):
    path = dialect
    body = {
        "responses": {"id": "r", "object": "response", "status": "completed", "output": []},
        "messages": {"id": "m", "type": "message", "role": "assistant", "content": []},
    }[dialect] | {"usage": {"input_tokens": 7, "output_tokens": 3}, "model": "scripted"}
    async with ScriptedServer(dialects=(path,)) as server, episode(server) as client:
        server.queue(Reply(body))
        status, reply = await client.ask(said("hi", dialect, metadata={"a": "b"}), dialect)
        (call,) = client.session.calls
    assert (status, reply) == (200, body)
    assert server.requests[0].path == f"/v1/{path}"
    assert server.requests[0].body["metadata"] == {"a": "b"}
    assert call.usage == Usage(prompt=7, completion=3)


async def test_forced_parameters_that_a_dialect_lacks_make_it_chat():
    async with ScriptedServer(dialects=("responses",)) as server:
        async with episode(server, sampling={"temperature": 0.7, "top_k": 20}) as client:
            await client.ask(said("hi", "responses", temperature=0.1), "responses")
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body["temperature"] == 0.7
    assert server.requests[0].body["top_k"] == 20


async def test_sampling_is_forced_and_output_limited():
    async with ScriptedServer() as server:
        async with episode(server, sampling={"temperature": 1.0}, max_output=500) as client:
            await client.ask(said("a", temperature=0.0, max_tokens=32_000, top_p=0.5))
            await client.ask(said("b", max_completion_tokens=100))
            await client.ask(said("c"))
    first, second, third = (request.body for request in server.requests)
    assert (first["temperature"], first["top_p"], first["max_tokens"]) == (1.0, 0.5, 500)
    assert first["model"] == "scripted"
    assert "max_completion_tokens" not in first
    assert second["max_completion_tokens"] == 100
    assert third["max_completion_tokens"] == 500


async def test_no_reply_longer_than_the_context_window_is_asked_for():
    async with ScriptedServer(context_window=4096) as server, episode(server) as client:
        await client.ask(said("a", max_tokens=32_000))
        endpoint = client.gateway.endpoint(client.session, client.gateway.url)
    assert server.requests[0].body["max_tokens"] == endpoint.max_output == 4096


async def test_token_ids_are_captured_and_never_shown():
    async with ScriptedServer(owned_by="vllm", context_window=4096) as server:
        server.queue(text("one", ids=([1, 2, 70_000], [5, 6])))
        async with episode(server) as client:
            assert client.gateway.endpoint(client.session, "http://x").context_window == 4096
            _, reply = await client.ask(said("hi", "messages"), "messages")
            _, chat = await client.ask(said("hi"))
            call = client.session.calls[0]
    assert np.frombuffer(call.prompt_ids, "<i4").tolist() == [1, 2, 70_000]
    assert np.frombuffer(call.response_ids, "<i4").tolist() == [5, 6]
    assert np.frombuffer(call.logprobs, "<f4").tolist() == [-0.5, -1.0]
    assert call.usage == Usage(prompt=3, completion=2)
    shown = json.dumps([reply, chat])
    assert not any(f in shown for f in ("token_ids", 'logprob"', "kv_transfer", 'stop_reason": n'))
    assert server.requests[0].body["return_token_ids"] is True


async def test_kinds_come_from_the_harness():
    def classify(headers, body):
        return ("subagent", headers["x-agent"]) if "x-agent" in headers else ("main", "")

    async with ScriptedServer() as server:
        async with episode(server, session={"classify": classify}) as client:
            await client.ask(said("a"))
            await client.ask(said("b"), headers={"X-Agent": "child"})
            kinds = [(call.kind, call.agent) for call in client.session.calls]
    assert kinds == [("main", ""), ("subagent", "child")]


async def test_a_broken_classifier_ends_the_episode():
    async with ScriptedServer() as server:
        async with episode(server, session={"classify": lambda h, b: 1 / 0}) as client:
            asking = asyncio.create_task(client.ask(said("a")))
            stop = await client.session.stop
            client.session.seal()
            assert (await asking)[0] == 410
    assert stop.cause == "harness"
    assert server.requests == []


async def test_the_turn_limit_counts_main_calls_only():
    task = Task(id="t", prompt="p", max_turns=2)

    def classify(headers, body):
        return ("side" if "x-side" in headers else "main"), ""

    async with ScriptedServer() as server:
        server.queue(Fail(400, "bad tool"))
        async with episode(server, session={"task": task, "classify": classify}) as client:
            await client.ask(said("refused, so not a turn"))
            await client.ask(said("1"))
            await client.ask(said("side"), headers={"x-side": "1"})
            await client.ask(said("2"))
            assert not client.session.stop.done()
            late = asyncio.create_task(client.ask(said("3")))
            assert await client.session.stop == Stop("policy", "turn limit: 2 model calls")
            client.session.seal()
            assert (await late)[0] == 410
            assert len(client.session.calls) == 4
    assert len(server.requests) == 4


async def test_wrong_keys_are_refused_and_both_header_styles_accepted():
    async with ScriptedServer() as server, episode(server) as client:
        assert (await client.ask(said("a"), key="sk-other"))[0] == 401
        assert (await client.ask(said("a"), key=""))[0] == 401
        other = {"x-api-key": client.session.key}
        assert (await client.ask(said("a", "messages"), "messages", key="", headers=other))[
            0
        ] == 200
        assert len(client.session.calls) == 1
    assert len(server.requests) == 1


async def test_sessions_are_never_mixed():
    async with ScriptedServer() as server, episode(server) as first:
        second = connected(first.gateway, first.http)
        stall = Stall(text("for the first"))
        server.queue(stall, text("for the second"))
        waiting = asyncio.create_task(first.ask(said("same body")))
        await stall.reached.wait()
        await second.ask(said("same body"))
        stall.released.set()
        await waiting
        assert (await second.ask(said("x"), key=first.session.key))[0] == 401
        assert b"for the first" in first.session.calls[0].reply
        assert b"for the second" in second.session.calls[0].reply
        assert len(first.session.calls) == len(second.session.calls) == 1


async def test_sealing_cancels_what_is_in_flight_and_refuses_what_comes_later():
    async with ScriptedServer() as server, episode(server) as client:
        stall = Stall(text("too late"))
        server.queue(text("in time"), stall)
        await client.ask(said("a"))
        waiting = asyncio.create_task(client.ask(said("b")))
        await stall.reached.wait()
        client.session.seal()
        assert (await waiting)[0] == 410
        await stall.hung_up.wait()
        assert (await client.ask(said("c")))[0] == 410
        assert len(client.session.calls) == 1
        model_seconds = client.session.model_seconds
        assert model_seconds == client.session.model_seconds > client.session.fruitless_seconds > 0
        client.gateway.close(client.session)
        async with client.post(said("d")) as response:
            assert (response.status, await response.read()) == (404, b"")


async def test_calls_are_in_order_of_arrival_after_sealing():
    async with ScriptedServer() as server, episode(server) as client:
        slow = Stall(text("slow"))
        server.queue(slow, text("fast"))
        waiting = asyncio.create_task(client.ask(said("first")))
        await slow.reached.wait()
        await client.ask(said("second"))
        slow.released.set()
        await waiting
        client.session.seal()
        calls = client.session.calls
    assert [call.index for call in calls] == [0, 1]
    assert b"slow" in calls[0].reply


@pytest.mark.parametrize("body", [b"not json", b"[1]", b'{"messages": 1}'])
async def test_a_malformed_body_is_the_harness_s_error(body):
    async with ScriptedServer() as server, episode(server) as client:
        url = f"{client.base}/v1/chat/completions"
        headers = {"Authorization": f"Bearer {client.session.key}"}
        async with client.http.post(url, data=body, headers=headers) as response:
            assert response.status == 400
            assert (await response.json())["error"]["type"] == "invalid_request_error"
    assert server.requests == []


async def test_the_unix_socket_serves_the_same():
    async with ScriptedServer() as server, episode(server) as client:
        socket = client.gateway.socket
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        connector = aiohttp.UnixConnector(str(socket))
        async with aiohttp.ClientSession(connector=connector) as http:
            over_unix = connected(client.gateway, http)
            assert (await over_unix.ask(said("hi")))[0] == 200
            assert len(over_unix.session.calls) == 1
    assert not socket.exists()


async def test_other_routes():
    async with ScriptedServer(token_count=42) as server, episode(server) as client:
        http, base = client.http, client.base
        for path in ("", "/v1"):
            async with http.head(base + path) as response:
                assert response.status == 200
        async with http.get(f"{base}/v1/models") as response:
            assert (await response.json())["data"][0]["id"] == "scripted"
        headers = {"x-api-key": client.session.key}
        url = f"{base}/v1/messages/count_tokens?beta=true"
        async with http.post(url, json=said("hi", "messages"), headers=headers) as response:
            assert await response.json() == {"input_tokens": 42}
        async with http.post(url, json={"messages": 1}, headers=headers) as response:
            assert response.status == 400
        async with http.post(url, json=said("hi", "messages")) as response:
            assert response.status == 401
        async with http.get(f"{client.gateway.url}/e/guess/v1/models") as response:
            assert (response.status, await response.read()) == (404, b"")
        url = f"{base}/v1/messages?beta=true"
        async with http.post(url, json=said("hi", "messages"), headers=headers) as response:
            assert response.status == 200
        assert len(client.session.calls) == 1


async def test_a_prompt_is_counted_as_it_would_be_rendered():
    forced = {"chat_template_kwargs": {"enable_thinking": False}}
    async with ScriptedServer(token_count=42) as server, episode(server, sampling=forced) as client:
        headers = {"x-api-key": client.session.key}
        url = f"{client.base}/v1/messages/count_tokens"
        async with client.http.post(url, json=said("hi", "messages"), headers=headers) as response:
            assert response.status == 200
    assert server.counted[0]["chat_template_kwargs"] == {"enable_thinking": False}


async def test_an_empty_reply_is_legal():
    async with ScriptedServer() as server, episode(server) as client:
        server.queue(text(None))
        status, reply = await client.ask(said("a"))
        assert (status, reply["choices"][0]["message"]["content"]) == (200, None)
        assert len(client.session.calls) == 1


async def test_screenshots_pass():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 3_000_000}}
    body = {"model": "m", "messages": [{"role": "user", "content": [image]}]}
    async with ScriptedServer() as server, episode(server) as client:
        url = f"{client.base}/v1/chat/completions"
        headers = {"x-api-key": client.session.key}
        data = io.BytesIO(json.dumps(body).encode())
        async with client.http.post(url, data=data, headers=headers) as response:
            assert response.status == 200
    assert server.requests[0].body["messages"] == body["messages"]


async def test_a_body_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("rollout.gateway.server.BODY_LIMIT", 1000)
    async with ScriptedServer() as server, episode(server) as client:
        assert (await client.ask(said("x" * 2000)))[0] == 413
        assert client.session.calls == []


async def test_tool_calls_pass():
    async with ScriptedServer() as server, episode(server) as client:
        server.queue(tool_call("send", {"to": "ä"}))
        _, reply = await client.ask(said("a"))
        (call,) = reply["choices"][0]["message"]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"to": "ä"}
        assert client.session.calls[0].finish == "tool_calls"


async def test_half_an_emoji_passes_and_every_record_is_strict_json():
    """Harnesses in JavaScript cut tool output inside one; some servers answer with one."""
    async with ScriptedServer() as server, episode(server) as client:
        server.queue(text("cut \ud83d"))
        status, reply = await client.ask(said("cut \ud83d"))
        assert (status, reply["choices"][0]["message"]["content"]) == (200, "cut \ufffd")
        assert server.requests[0].body["messages"][0]["content"] == "cut \ufffd"
        [call] = client.session.calls
        assert msgspec.json.decode(call.request)["messages"][0]["content"] == "cut \ufffd"


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": ' + b"[" * 100_000,
        b'{"input": [{"type": "message", "role": "user", "content": 5}]}',
        b'{"input": [{"type": "function_call", "name": {}, "arguments": []}]}',
        b'{"input": {"type": 5}, "tools": {"a": 1}}',
    ],
)
async def test_no_request_is_held_against_the_model_server(body):
    async with ScriptedServer() as server, episode(server) as client:
        for dialect in ("chat", "responses", "messages"):
            headers = {"Authorization": f"Bearer {client.session.key}"}
            url = client.base + PATHS[dialect]
            async with client.http.post(url, data=body, headers=headers) as response:
                assert response.status in (200, 400)
        assert not client.session.stop.done()


@pytest.mark.parametrize("dialect", ["chat", "messages"])
async def test_pictures_are_recorded_once_and_a_repetition_is_still_recognised(dialect):
    picture = Image(data=b"\x89PNG")
    data = b64encode(picture.data).decode()
    part = {"type": "image_url", "image_url": {"url": data_url(picture)}}
    if dialect == "messages":
        part = {"type": "image", "source": {"type": "base64", "media_type": "image/png"}}
        part["source"]["data"] = data
    body = {**said("", dialect), "messages": [{"role": "user", "content": [part, part]}]}
    async with ScriptedServer() as server, episode(server) as client:
        first = await client.ask(body, dialect)
        again = {"x-stainless-retry-count": "1"}
        assert await client.ask(body, dialect, headers=again) == first
        [call] = client.session.calls
        assert client.session.images == {picture.digest: picture}
        assert data.encode() not in call.request
        assert json.loads(put_back(call.request, client.session.images)) == body
    assert str(server.requests[0].body).count(data) == 2
