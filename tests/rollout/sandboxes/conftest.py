"""One gateway stub and every sandbox provider that works on this machine."""

import asyncio
import functools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rollout import plugins
from rollout.sandbox import Limits, SandboxProvider, SandboxSpec

DOCKER = pytest.param("docker", marks=pytest.mark.docker)
ENV = {"PATH": "/usr/bin:/bin"}


@functools.cache
def _working(name: str) -> tuple[SandboxProvider, str]:
    provider = plugins.load("rollout.sandboxes", name, SandboxProvider)()
    return provider, asyncio.run(provider.check())


def _provider(name: str) -> SandboxProvider:
    provider, problem = _working(name)
    if problem:
        pytest.skip(problem)
    return provider


@pytest.fixture(params=["local", "bubblewrap", DOCKER])
def provider(request: pytest.FixtureRequest) -> SandboxProvider:
    return _provider(request.param)


@pytest.fixture(params=["bubblewrap", DOCKER])
def isolating(request: pytest.FixtureRequest) -> SandboxProvider:
    return _provider(request.param)


@dataclass
class Gateway:
    socket: Path
    port: int
    requests: list[bytes] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def spec(self, *programs: Path, **limits: int) -> SandboxSpec:
        return SandboxSpec(
            gateway_socket=self.socket,
            gateway_port=self.port,
            programs=programs,
            limits=Limits(**limits),
        )

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        self.asked.set()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    folder = tmp_path / "gateway"
    folder.mkdir(mode=0o700)
    (folder / "secret").write_text("not for the agent")
    stub = Gateway(folder / "gateway.sock", 0)
    unix = await asyncio.start_unix_server(stub.answer, stub.socket)
    tcp = await asyncio.start_server(stub.answer, "127.0.0.1", 0)
    stub.port = tcp.sockets[0].getsockname()[1]
    async with unix, tcp:
        yield stub
