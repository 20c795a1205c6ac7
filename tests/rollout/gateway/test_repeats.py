"""A body that arrives again: the same call, or a second one."""

import asyncio
from contextlib import suppress

import pytest
from support.gateways import episode, said
from support.scripted_server import ScriptedServer, Stall, text


async def hang_up(asking):
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking


@pytest.fixture
async def server():
    async with ScriptedServer() as running:
        yield running


async def test_while_the_first_waits_a_repetition_joins_it(server):
    stall = Stall(text("once"))
    server.queue(stall)
    async with episode(server) as client:
        first = asyncio.create_task(client.ask(said("a")))
        await stall.reached.wait()
        second = asyncio.create_task(client.ask(said("a")))
        other = asyncio.create_task(client.ask(said("b")))
        await other
        stall.released.set()
        assert (await first) == (await second)
        assert len(client.session.calls) == 2
    assert len(server.requests) == 2


async def test_a_client_that_says_it_is_no_retry_gets_its_own_call(server):
    stall = Stall(text("first"))
    server.queue(stall, text("second"))
    async with episode(server) as client:
        fresh = {"x-stainless-retry-count": "0"}
        first = asyncio.create_task(client.ask(said("a"), headers=fresh))
        await stall.reached.wait()
        _, reply = await client.ask(said("a"), headers=fresh)
        assert "second" in str(reply)
        stall.released.set()
        assert "first" in str(await first)
        assert len(client.session.calls) == 2


@pytest.mark.parametrize("headers", [{}, {"x-stainless-retry-count": "1"}])
async def test_a_retry_after_a_broken_connection_joins_the_call(server, headers):
    stall = Stall(text("kept"))
    server.queue(stall)
    async with episode(server) as client:
        first = asyncio.create_task(client.ask(said("a")))
        await stall.reached.wait()
        await hang_up(first)
        second = asyncio.create_task(client.ask(said("a"), headers=headers))
        stall.released.set()
        assert "kept" in str(await second)
        assert len(client.session.calls) == 1
    assert len(server.requests) == 1


async def test_a_stream_that_broke_is_retried_without_streaming(server):
    stall = Stall(text("kept"))
    server.queue(stall)
    async with episode(server, keep_alive=0.01) as client:
        async with client.post(said("a", "messages", stream=True), "messages") as response:
            await response.content.readany()
            response.close()
        second = asyncio.create_task(client.ask(said("a", "messages"), "messages"))
        stall.released.set()
        status, reply = await second
        assert (status, reply["content"][0]["text"]) == (200, "kept")
        assert len(client.session.calls) == 1
    assert len(server.requests) == 1


async def test_without_a_retry_the_call_is_given_up_and_not_recorded(server):
    stall = Stall(text("nobody wants it"))
    server.queue(stall)
    async with episode(server, grace=0.01) as client:
        first = asyncio.create_task(client.ask(said("a")))
        await stall.reached.wait()
        await hang_up(first)
        await stall.hung_up.wait()
        assert client.session.calls == []
        status, _ = await client.ask(said("a"))
        assert status == 200
        assert [call.index for call in client.session.calls] == [1]
        client.session.seal()
        assert [call.index for call in client.session.calls] == [0]


async def test_the_same_request_after_its_reply_is_a_new_call(server):
    server.queue(text("one"), text("two"))
    async with episode(server) as client:
        assert "one" in str(await client.ask(said("a")))
        assert "two" in str(await client.ask(said("a")))
        assert len(client.session.calls) == 2


async def test_a_retry_of_a_delivered_reply_gets_it_again(server):
    server.queue(text("one"), text("two"))
    async with episode(server) as client:
        first = await client.ask(said("a"))
        again = await client.ask(said("a"), headers={"x-stainless-retry-count": "2"})
        assert first == again
        assert len(client.session.calls) == 1
    assert len(server.requests) == 1


async def test_other_dialects_and_other_bodies_are_other_calls(server):
    async with episode(server) as client:
        retry = {"x-stainless-retry-count": "1"}
        await client.ask(said("a"), headers=retry)
        await client.ask(said("a", max_tokens=7), headers=retry)
        await client.ask(said("a", "messages"), "messages", headers=retry)
        assert len(client.session.calls) == 3
