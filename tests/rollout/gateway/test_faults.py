"""Every way in which a model server can fail, and what the harness gets to see of it."""

import asyncio
import json

import pytest
from support.gateways import QUICK, episode, said
from support.scripted_server import Drop, Fail, Garbage, Reply, ScriptedServer, Stall, text

from rollout.gateway.retry import Retry
from rollout.gateway.upstream import ModelReply, Transient, Upstream

ALL = ("chat", "responses", "messages")

FAULTS = {
    "500": Fail(500),
    "503": Fail(503, headers={"Retry-After": "0"}),
    "429": Fail(429, headers={"Retry-After": "0"}),
    "408": Fail(408),
    "dropped before the headers": Drop(),
    "dropped in the body": Drop(mid_body=True),
    "not JSON": Garbage(),
    "cut JSON": Garbage(b'{"choices": [{"message"'),
    "no choices": Reply({"id": "x", "choices": []}),
    "no message": Reply({"id": "x", "choices": [{"index": 0}]}),
    "an error with status 200": Reply({"error": {"message": "busy"}}),
    "aborted by a weight update": Reply(
        {"choices": [{"message": {"content": "ha"}, "finish_reason": "abort"}]}
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("stream", [False, True])
async def test_a_transient_fault_is_never_seen(fault, stream):
    async with ScriptedServer() as server, episode(server) as client:
        server.queue(fault, fault, text("in the end"))
        status, reply = await client.ask(said("a", stream=stream))
        (call,) = client.session.calls
        assert not client.session.stop.done()
        assert client.session.fruitless_seconds > 0
    assert status == 200
    assert "in the end" in str(reply)
    assert call.tries == 3
    assert len({json.dumps(request.body) for request in server.requests}) == 1


@pytest.mark.parametrize("fault", [Fail(500), Fail(429), Drop(), Drop(mid_body=True), Garbage()])
async def test_a_dead_server_ends_the_episode_from_outside(fault):
    async with ScriptedServer() as server, episode(server) as client:
        server.default = fault
        asking = asyncio.create_task(client.ask(said("a")))
        stop = await client.session.stop
        later = asyncio.create_task(client.ask(said("b")))
        assert stop.cause == "model"
        assert "failed 3 times" in stop.reason
        assert not asking.done()
        client.session.seal()
        assert {(await asking)[0], (await later)[0]} == {410}
        assert client.session.calls == []
        assert client.session.fruitless_seconds > 0
    assert len(server.requests) == QUICK.tries


async def test_a_server_that_is_gone_ends_the_episode():
    async with ScriptedServer() as server, episode(server) as client:
        await server.stop()
        asking = asyncio.create_task(client.ask(said("a")))
        assert (await client.session.stop).cause == "model"
        client.session.seal()
        await asking


async def test_a_server_that_comes_back_is_not_missed():
    failed = asyncio.Event()

    class Patient(Retry):
        def delay(self, tries, failing_for, error):
            failed.set()
            return 0.001

    async with ScriptedServer() as server:
        async with episode(server, retry=Patient()) as client:
            await server.stop()
            asking = asyncio.create_task(client.ask(said("a")))
            await failed.wait()
            async with server:
                assert (await asking)[0] == 200
            assert client.session.calls[0].tries > 1


async def test_a_stream_stays_quietly_open_when_the_server_is_dead():
    async with ScriptedServer() as server, episode(server, keep_alive=0.005) as client:
        server.default = Fail(500)
        async with client.post(said("a", stream=True)) as response:
            assert response.status == 200
            await client.session.stop
            await response.content.readany()
            client.session.seal()
            rest = await response.read()
        assert b"error" not in rest
        assert b"[DONE]" not in rest


class Broken(Upstream):
    """One whose code is wrong."""

    model = "broken"

    async def complete(self, request):
        raise KeyError("oops")


async def test_an_upstream_that_raises_anything_else_ends_the_episode_at_once():
    async with episode(Broken()) as client:
        asking = asyncio.create_task(client.ask(said("a")))
        stop = await client.session.stop
        client.session.seal()
        await asking
    assert stop.cause == "model"
    assert "KeyError: 'oops'" in stop.reason


KEEP_ALIVE = {"chat": b'"delta":{}', "responses": b"response.in_progress", "messages": b"ping"}


@pytest.mark.parametrize("dialect", ALL)
async def test_a_stall_is_bridged_by_real_events(dialect):
    async with ScriptedServer() as server, episode(server, keep_alive=0.01) as client:
        stall = Stall(text("at last"))
        server.queue(stall)
        async with client.post(said("a", dialect, stream=True), dialect) as response:
            assert response.status == 200
            seen = b""
            while seen.replace(b" ", b"").count(KEEP_ALIVE[dialect]) < 3:
                seen += await response.content.readany()
            stall.released.set()
            seen += await response.read()
        (call,) = client.session.calls
    assert b"at last" in seen
    assert call.tries == 1


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_goes_to_the_harness_at_once(dialect, stream):
    async with ScriptedServer() as server, episode(server) as client:
        server.queue(Fail(400, "unknown parameter: foo"))
        status, reply = await client.ask(said("a", dialect, stream=stream), dialect)
        (call,) = client.session.calls
        assert client.session.refused == "unknown parameter: foo"
        assert not client.session.stop.done()
    assert status == 400
    assert reply["error"]["message"] == "unknown parameter: foo"
    assert (call.status, json.loads(call.reply)) == (400, reply)
    assert len(server.requests) == 1


@pytest.mark.parametrize("dialect", ALL)
async def test_a_refusal_in_an_open_stream_is_an_error_event(dialect):
    async with ScriptedServer() as server, episode(server, keep_alive=0.01) as client:
        stall = Stall(Fail(400, "no such tool"))
        server.queue(stall)
        async with client.post(said("a", dialect, stream=True), dialect) as response:
            await response.content.readany()
            stall.released.set()
            rest = await response.read()
        assert b"no such tool" in rest
        assert client.session.calls[0].status == 400


OVERFLOWS = {
    "OpenAI": "This model's maximum context length is 4096 tokens. However, your messages resulted"
    " in 9000 tokens. Please reduce the length of the messages.",
    "vLLM": "This model's maximum context length is 4096 tokens. However, you requested 9500 tokens"
    " (9000 in the messages, 500 in the completion).",
    "vLLM, newer": "You passed 9000 input tokens and requested 500 output tokens. However, the"
    " model's context length is only 4096 tokens, resulting in a maximum input length of 3596.",
    "vLLM, later": "This model's maximum context length is 4096 tokens. However, you requested 500"
    " output tokens and your prompt contains at least 9000 input tokens, for a total of 9500 tokens.",
    "vLLM, output": "'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum"
    " context length is 4096 tokens and your request has 9000 input tokens (500 > 4096 - 9000).",
    "SGLang": "Requested token count exceeds the model's maximum context length of 4096 tokens. You"
    " requested a total of 9500 tokens: 9000 tokens from the input messages and 500 tokens for the"
    " completion.",
    "vLLM 0.32, prompt alone": "This model's maximum context length is 4096 tokens. However, your"
    " prompt contains at least 4097 input tokens, which exceeds this limit even without any output"
    " tokens. Please reduce the length of the input prompt.",
    "vLLM 0.32, characters": "This model's maximum context length is 4096 tokens. However, your"
    " prompt contains 99999 characters (more than 32768 characters, which is the upper bound for"
    " 4000 input tokens). Please reduce the length of the input prompt.",
    "vLLM 0.32, engine": "The decoder prompt (length 9000) is longer than the maximum model length"
    " of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    "vLLM 0.32, full to the last token": "max_tokens must be at least 1, got 0."
    " (parameter=max_tokens, value=0)",
    "SGLang, prompt alone": "The input (9000 tokens) is longer than the model's context length"
    " (4096 tokens).",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "Anthropic": "prompt is too long: 9000 tokens > 4096 maximum",
}


@pytest.mark.parametrize("message", OVERFLOWS.values(), ids=OVERFLOWS.keys())
async def test_a_context_overflow_keeps_its_meaning(message):
    async with ScriptedServer(context_window=4096) as server, episode(server) as client:
        server.queue(Fail(400, message))
        status, reply = await client.ask(said("a"))
        assert client.session.refused == ""
    assert status == 400
    assert reply["error"]["code"] == "context_length_exceeded"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "server_name", ["vLLM", "vLLM, newer", "vLLM, later", "vLLM, output", "SGLang"]
)
async def test_a_prompt_that_fits_is_asked_again_with_the_room_that_is_left(server_name):
    message = OVERFLOWS[server_name].replace("9000", "4000").replace("9500", "4500")
    async with ScriptedServer(context_window=4096) as server, episode(server) as client:
        server.queue(Fail(400, message), text("short"))
        status, _ = await client.ask(said("a", max_tokens=500))
        assert client.session.calls[0].tries == 1
    assert status == 200
    assert [request.body["max_tokens"] for request in server.requests] == [500, 96]


def test_the_pause_grows_and_the_server_s_wish_counts():
    retry = Retry(tries=6, budget=120.0, base=1.0, cap=5.0)
    pauses = [retry.delay(n, 0.0, Transient("x")) for n in range(1, 6)]
    for pause, most in zip(pauses, (1, 2, 4, 5, 5), strict=True):
        assert most / 2 <= pause <= most
    assert retry.delay(1, 0.0, Transient("x", retry_after=42.0)) == 42.0
    assert retry.delay(1, 0.0, Transient("x", retry_after=300.0)) is None
    assert retry.delay(1, 119.9, Transient("x")) is None
    assert retry.delay(6, 0.0, Transient("x")) is None


async def test_what_a_call_waits_for_in_vain_counts_even_when_it_never_ends():
    class Silent(Broken):
        async def complete(self, request) -> ModelReply:
            entered.set()
            await asyncio.Event().wait()
            raise AssertionError

    entered = asyncio.Event()
    async with episode(Silent()) as client:
        asking = asyncio.create_task(client.ask(said("a")))
        await entered.wait()
        client.session.seal()
        await asking
        session = client.session
        assert session.model_seconds >= session.fruitless_seconds > 0
