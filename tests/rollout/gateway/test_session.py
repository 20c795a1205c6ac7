"""Tool calls through a session: dispatched, logged, sealed."""

import asyncio

import aiohttp
import pytest
from support.gateways import connected, said
from support.toys import Fake

from rollout.gateway.server import Gateway
from rollout.gateway.session import READERS, Session, Stop
from rollout.gateway.upstreams.openai import OpenAI
from rollout.types import Task, ToolReply


def session(dispatch):
    return Session(
        task=Task(id="t", prompt="p"),
        seed=1,
        surface="native",
        dispatch=dispatch,
        classify=lambda headers, body: ("main", ""),
    )


async def test_calls_are_dispatched_and_logged():
    async def dispatch(name, arguments):
        return ToolReply(status=201, body={"name": name, "got": arguments})

    s = session(dispatch)
    reply = await s.call_tool("send", {"to": ("a", "b")})
    await s.call_tool("send", None, "mcp")
    first, second = s.tool_calls
    assert reply.body == {"name": "send", "got": {"to": ["a", "b"]}}
    assert (first.name, first.arguments, first.status) == ("send", {"to": ["a", "b"]}, 201)
    assert (first.reply, first.surface, second.surface) == (reply.body, "native", "mcp")
    assert (first.index, second.index) == (0, 1)
    assert s.tool_seconds > 0


async def test_the_log_does_not_change_when_the_world_does():
    inbox = [{"id": 1}]

    async def dispatch(name, arguments):
        arguments["mark"] = "changed by the world"
        return ToolReply(body={"inbox": inbox})

    s = session(dispatch)
    reply = await s.call_tool("list", {})
    inbox.append({"id": 2})
    assert s.tool_calls[0].arguments == {}
    assert s.tool_calls[0].reply == reply.body == {"inbox": [{"id": 1}]}


@pytest.mark.parametrize("body", [object(), {"at": {1, 2}, "x": object()}])
async def test_a_reply_that_is_no_json_is_our_fault(body):
    async def dispatch(name, arguments):
        return ToolReply(body=body)

    s = session(dispatch)
    assert (await s.call_tool("odd", {})).status == 500
    assert s.fault is not None


async def test_an_exception_in_the_world_is_kept_and_tells_the_agent_nothing():
    async def dispatch(name, arguments):
        raise ZeroDivisionError("secret detail")

    s = session(dispatch)
    reply = await s.call_tool("boom", {})
    assert reply.status == s.tool_calls[0].status == 500
    assert "secret" not in str(reply.body)
    assert "tool boom: ZeroDivisionError: secret detail" in str(s.fault)
    assert s.stop.result().cause == "environment"


async def test_a_harness_that_hangs_up_does_not_undo_its_call():
    entered, go = asyncio.Event(), asyncio.Event()

    async def dispatch(name, arguments):
        entered.set()
        await go.wait()
        return ToolReply(body="done")

    s = session(dispatch)
    calling = asyncio.create_task(s.call_tool("slow", {}))
    await entered.wait()
    calling.cancel()
    await asyncio.wait({calling})
    go.set()
    assert await s.call_tool("slow", {}) == ToolReply(body="done")
    assert [call.reply for call in s.tool_calls] == ["done", "done"]


async def test_who_fills_the_records_is_ended(monkeypatch):
    monkeypatch.setattr("rollout.gateway.session.KEPT", 2**20)
    async with Gateway(Fake()) as gateway, aiohttp.ClientSession() as http:
        client = connected(gateway, http, surface="skill", dispatch=_saved)
        long = "x" * 400_000
        await client.ask(said("hello"))
        for _ in range(2):
            async with http.post(f"{client.base}/tools/send", json={"text": long}) as response:
                assert response.status == 200
        assert not client.session.stop.done()
        held = asyncio.create_task(client.ask(said(long)))
        assert await client.session.stop == Stop("policy", "its calls hold more than 1 MiB")
        gateway.close(client.session)
        assert (await held)[0] == 410


async def _saved(name, arguments):
    return ToolReply(body="saved")


async def test_bodies_of_one_episode_are_read_a_few_at_a_time():
    class Request:
        busy = most = 0

        async def read(self):
            Request.busy += 1
            Request.most = max(Request.most, Request.busy)
            await asyncio.sleep(0)
            Request.busy -= 1
            return b"body"

    s = session(_saved)
    assert await asyncio.gather(*(s.read(Request()) for _ in range(3 * READERS)))
    assert Request.most == READERS


async def test_sealing_stops_tools_too():
    entered = asyncio.Event()
    changed = []

    async def dispatch(name, arguments):
        entered.set()
        await asyncio.sleep(0)
        changed.append(name)
        return ToolReply()

    s = session(dispatch)
    calling = asyncio.create_task(s.call_tool("slow", {}))
    await entered.wait()
    s.seal()
    assert (await calling).status == 410
    assert (await s.call_tool("late", {})).status == 410
    assert s.tool_calls == changed == []
    s.seal()


async def test_tools_over_http():
    async def dispatch(name, arguments):
        return ToolReply(status=422, body={"tool": name, **arguments})

    async with Gateway(OpenAI("m")) as gateway, aiohttp.ClientSession() as http:
        client = connected(gateway, http, surface="skill", dispatch=dispatch)
        async with http.post(f"{client.base}/tools/send", json={"to": "x"}) as response:
            assert (response.status, await response.json()) == (422, {"tool": "send", "to": "x"})
        async with http.get(f"{client.base}/tools") as response:
            assert await response.json() == {"tools": []}
        (call,) = client.session.tool_calls
        assert (call.name, call.surface) == ("send", "skill")


async def test_arguments_that_no_json_can_hold_are_the_agents_fault():
    given = []

    async def dispatch(name, arguments):
        given.append(arguments)
        arguments.clear()
        return ToolReply(body={})

    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    s = session(dispatch)
    assert (await s.call_tool("send", deep)).status == 400
    assert (await s.call_tool("send", {"text": "half \ud83d", "n": 10**30})).status == 200
    assert s.fault is None
    assert [call.arguments for call in s.tool_calls] == [
        None,
        {"text": "half \ufffd", "n": 10**30},
    ]
    assert given == [{}]
