"""Connections that agents hold: none of them keeps another episode out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from support.gateways import connected, said
from support.toys import Fake

from rollout.gateway import doorkeeper
from rollout.gateway.server import Gateway

Stranger = Callable[[Gateway, bytes], Awaitable[asyncio.StreamReader]]


@pytest.fixture
async def stranger() -> AsyncIterator[Stranger]:
    """Opens a connection to the gateway's socket, and sends something."""
    opened: list[asyncio.StreamWriter] = []

    async def connect(gateway: Gateway, data: bytes) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_unix_connection(str(gateway.socket))
        opened.append(writer)
        writer.write(data)
        await writer.drain()
        return reader

    yield connect
    for writer in opened:
        writer.close()


async def test_only_the_latest_strangers_are_kept(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorkeeper, "STRANGERS", 3)
    async with Gateway(Fake()) as gateway, aiohttp.ClientSession() as http:
        client = connected(gateway, http)
        assert (await client.ask(said("one")))[0] == 200
        slow = [await stranger(gateway, b"POST /e/x HTTP/1.1\r\nHo") for _ in range(6)]
        assert [await reader.read() for reader in slow[:3]] == [b""] * 3
        # The session's connection is older than all of them, and still there.
        assert (await client.ask(said("two")))[0] == 200
        assert len(client.session.calls) == 2


async def test_a_session_gets_its_share_and_no_more(
    stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorkeeper, "SHARE", 2)
    async with Gateway(Fake()) as gateway, aiohttp.ClientSession() as http:
        client, other = connected(gateway, http), connected(gateway, http)
        path = client.base.removeprefix(gateway.url)
        hello = f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        readers = [await stranger(gateway, hello) for _ in range(3)]
        lines = [await reader.readline() for reader in readers]
        assert [line.split()[1] for line in lines] == [b"200", b"200", b"503"]
        assert (await other.ask(said("hello")))[0] == 200


async def test_what_is_no_http_is_not_logged(
    stranger: Stranger, caplog: pytest.LogCaptureFixture
) -> None:
    async with Gateway(Fake()) as gateway:
        with caplog.at_level(logging.DEBUG):
            for data in (b"GET / HTTP/9.9\r\n\r\n", b"GET /\x1b[31m HTTP/1.1\r\n\r\n"):
                reader = await stranger(gateway, data)
                assert b"400" in await reader.readline()
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
