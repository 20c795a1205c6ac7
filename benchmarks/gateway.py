"""What one recorded model call costs: CPU time and memory of the process that proxies it.

    python benchmarks/gateway.py                         ours alone
    python benchmarks/gateway.py --litellm VENV --agent-lightning VENV

Three processes: a fake vLLM server that answers every call with the same 43 KB (4,000 prompt ids, 200
sampled tokens with logprobs), the proxy under test, and this one, which sends 16 KB requests that differ
from call to call. CPU time is the proxy's own, user and system, children included, so a busy machine
does not change it much. Peers live in virtual environments of their own: `pip install 'litellm[proxy]'`,
`pip install agentlightning` (1.0 and later, Python 3.12 and later).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.table import Table

TICKS = os.sysconf("SC_CLK_TCK")
MODEL = "bench"
READY_SECONDS = 120.0


# ------------------------------------------------------------------------------------ the payloads


def request_body(number: int) -> bytes:
    """A 16 KB conversation with two tools; `number` makes it differ from all others."""
    words = random.Random(number)
    text = " ".join(f"w{words.randrange(10**6)}" for _ in range(1560))
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [
        {"type": "function", "function": {"name": name, "parameters": parameters}}
        for name in ("read", "write")
    ]
    messages = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": text},
        {"role": "assistant", "content": "Let me look."},
        {"role": "user", "content": text[::-1][:3000]},
    ]
    return json.dumps({"model": MODEL, "messages": messages, "tools": tools}).encode()


def reply_body() -> bytes:
    """What vLLM answers with `return_token_ids` and `logprobs`: about 43 KB."""
    draw = random.Random(0)
    tokens = [f"t{n}" for n in range(200)]
    logprobs = [
        {
            "token": token,
            "logprob": -draw.random(),
            "bytes": list(token.encode()),
            "top_logprobs": [],
        }
        for token in tokens
    ]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": " ".join(tokens), "tool_calls": []},
        "logprobs": {"content": logprobs},
        "finish_reason": "stop",
        "stop_reason": None,
        "token_ids": [draw.randrange(60_000) for _ in tokens],
    }
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": MODEL,
            "choices": [choice],
            "usage": {"prompt_tokens": 4000, "completion_tokens": 200, "total_tokens": 4200},
            "prompt_logprobs": None,
            "prompt_token_ids": [draw.randrange(60_000) for _ in range(4000)],
            "kv_transfer_params": None,
        },
        separators=(",", ":"),
    ).encode()


# ------------------------------------------------------------- HTTP, as little of it as will do


async def read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The first line and the body of one HTTP/1.1 message."""
    head = await reader.readuntil(b"\r\n\r\n")
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        parts = []
        while size := int(await reader.readline(), 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        body = b"".join(parts)
    else:
        length = int(lower.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        body = await reader.readexactly(length)
    return head.split(b"\r\n", 1)[0], body


def message(first: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    lines = [first, f"Content-Length: {len(body)}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(frozen=True)
class Target:
    """Where calls go."""

    port: int
    path: str
    headers: dict[str, str] = field(default_factory=dict)


async def call(connection: Any, target: Target, body: bytes) -> bytes:
    reader, writer = connection
    headers = {"Host": "127.0.0.1", **target.headers}
    writer.write(message(f"POST {target.path} HTTP/1.1", body, headers))
    status, reply = await read_message(reader)
    if not status.startswith(b"HTTP/1.1 20"):
        raise RuntimeError(f"{target.path}: {status.decode()} {reply[:500].decode()}")
    return reply


async def serve_upstream() -> None:
    """The fake model server: prints its port, then answers until it is killed."""
    reply = message("HTTP/1.1 200 OK", reply_body())
    models = json.dumps({"data": [{"id": MODEL, "owned_by": "vllm", "max_model_len": 131072}]})
    listing = message("HTTP/1.1 200 OK", models.encode())

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first, _ = await read_message(reader)
                writer.write(listing if first.startswith(b"GET") else reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# ----------------------------------------------------------------------------------------- proxies


async def serve_ours(upstream: int, calls_per_session: int) -> None:
    """Our gateway: for each line on stdin, seals the last session and prints where the next one is."""
    from rollout.gateway.server import Gateway
    from rollout.gateway.upstreams.openai import OpenAI
    from rollout.harness import Harness
    from rollout.types import Task, ToolReply

    async def dispatch(_name: str, _arguments: Any) -> ToolReply:
        return ToolReply()

    server = OpenAI(MODEL, f"http://127.0.0.1:{upstream}/v1")
    await server.check()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    async with Gateway(server) as gateway:
        session = None
        while await lines.readline():
            if session is not None:
                gateway.close(session)
                assert len(session.calls) == calls_per_session, len(session.calls)
                assert all(len(call.prompt_ids) == 16_000 for call in session.calls)
            session = gateway.open(
                task=Task(id="bench", prompt=""),
                seed=0,
                surface="native",
                dispatch=dispatch,
                classify=Harness.classify,
            )
            where = {"port": gateway.port, "token": session.token, "key": session.key}
            print(json.dumps(where), flush=True)
    await server.close()


Next = Callable[[], Awaitable[Target]]
"""Opens the next session of a proxy; called once per `calls_per_session` calls."""


@dataclass(frozen=True)
class Proxy:
    name: str
    pid: int
    next_session: Next


@asynccontextmanager
async def process(*argv: str, **options: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    running = await asyncio.create_subprocess_exec(*argv, **options)
    try:
        yield running
    finally:
        if running.returncode is None:
            running.terminate()
        await running.wait()


@asynccontextmanager
async def upstream() -> AsyncIterator[int]:
    pipe = asyncio.subprocess.PIPE
    async with process(sys.executable, __file__, "--serve", "upstream", stdout=pipe) as running:
        yield int(await running.stdout.readline())  # type: ignore[union-attr]


@asynccontextmanager
async def ours(port: int, options: argparse.Namespace) -> AsyncIterator[Proxy]:
    pipe = asyncio.subprocess.PIPE
    argv = (sys.executable, __file__, "--serve", "ours", "--upstream", str(port))
    argv += ("--session", str(options.session))
    async with process(*argv, stdin=pipe, stdout=pipe) as running:

        async def next_session() -> Target:
            running.stdin.write(b"\n")  # type: ignore[union-attr]
            where = json.loads(await running.stdout.readline())  # type: ignore[union-attr]
            path = f"/e/{where['token']}/v1/chat/completions"
            return Target(where["port"], path, {"Authorization": f"Bearer {where['key']}"})

        yield Proxy("AnyHarness gateway", running.pid, next_session)


@asynccontextmanager
async def litellm(port: int, options: argparse.Namespace) -> AsyncIterator[Proxy]:
    """LiteLLM's proxy with one model and no logging: it forwards, and records nothing."""
    parameters = {"model": f"openai/{MODEL}", "api_base": f"http://127.0.0.1:{port}/v1"}
    entry = {"model_name": MODEL, "litellm_params": {**parameters, "api_key": "none"}}
    own = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.json")  # YAML's subset
        key = f"sk-{uuid4().hex}"
        general = {"master_key": key}
        config.write_text(json.dumps({"model_list": [entry], "general_settings": general}))
        argv = (f"{options.litellm}/bin/litellm", "--config", str(config), "--port", str(own))
        quiet = asyncio.subprocess.DEVNULL
        async with process(
            *argv, "--host", "127.0.0.1", stdout=quiet, stderr=quiet, cwd=folder
        ) as running:
            await listening(own, running)
            target = Target(own, "/v1/chat/completions", {"Authorization": f"Bearer {key}"})

            async def next_session() -> Target:
                return target

            yield Proxy("LiteLLM proxy (records nothing)", running.pid, next_session)


@asynccontextmanager
async def agent_lightning(port: int, options: argparse.Namespace) -> AsyncIterator[Proxy]:
    """Agent-lightning's server in training mode, one rollout a session; it keeps all calls in memory."""
    own = free_port()
    argv = (f"{options.agent_lightning}/bin/agl-server", "host=127.0.0.1", f"port={own}")
    quiet = asyncio.subprocess.DEVNULL
    with tempfile.TemporaryDirectory() as folder:
        async with process(
            *argv, f"default_proxy.model_name={MODEL}", stdout=quiet, stderr=quiet, cwd=folder
        ) as running:
            await listening(own, running)
            model = {"model": MODEL, "endpoint": f"http://127.0.0.1:{port}/v1"}
            await post(Target(own, "/api/models"), [model])

            async def next_session() -> Target:
                rollout = uuid4().hex
                await post(Target(own, "/api/rollouts"), [{"rollout_id": rollout, "input": {}}])
                path = f"/proxy/rollout/{rollout}/attempt/0/mode/train/openai/v1/chat/completions"
                return Target(own, path)

            yield Proxy("agent-lightning server", running.pid, next_session)


async def post(target: Target, body: Any) -> None:
    connection = await asyncio.open_connection("127.0.0.1", target.port)
    await call(connection, target, json.dumps(body).encode())
    connection[1].close()


async def listening(port: int, running: asyncio.subprocess.Process) -> None:
    """Wait until a server that was just started accepts connections."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and running.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.2)
        else:
            writer.close()
            return
    raise RuntimeError(f"process {running.pid} did not listen on port {port}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# ------------------------------------------------------------------------------------- measurement


@dataclass(frozen=True)
class Result:
    name: str
    cpu_ms: float
    """Per call."""
    p50_ms: float
    megabytes: tuple[float, float]
    """Resident after the warm-up, and at the end."""


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its descendants."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(int(value) for value in fields[11:15]) / TICKS
    return own + sum(cpu_seconds(child) for child in children(pid))


def resident(pid: int) -> float:
    """Megabytes, descendants included."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    own = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return own + sum(resident(child) for child in children(pid))


def children(pid: int) -> list[int]:
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def measure(proxy: Proxy, options: argparse.Namespace) -> Result:
    bodies = [request_body(n) for n in range(options.session)]
    await run_session(proxy, bodies, options.concurrency)  # warm-up
    before, memory = cpu_seconds(proxy.pid), resident(proxy.pid)
    took: list[float] = []
    for _ in range(max(1, options.calls // options.session)):
        took += await run_session(proxy, bodies, options.concurrency)
    spent = cpu_seconds(proxy.pid) - before
    p50 = sorted(took)[len(took) // 2] * 1000
    return Result(proxy.name, spent / len(took) * 1000, p50, (memory, resident(proxy.pid)))


async def run_session(proxy: Proxy, bodies: list[bytes], concurrency: int) -> list[float]:
    """Send every body once; seconds per call."""
    target = await proxy.next_session()
    waiting = list(bodies)

    async def work() -> list[float]:
        connection = await asyncio.open_connection("127.0.0.1", target.port)
        took = []
        while waiting:
            begin = time.perf_counter()
            await call(connection, target, waiting.pop())
            took.append(time.perf_counter() - begin)
        connection[1].close()
        return took

    return list(chain(*await asyncio.gather(*(work() for _ in range(concurrency)))))


async def compare(options: argparse.Namespace) -> list[Result]:
    proxies = [ours]
    proxies += [agent_lightning] if options.agent_lightning else []
    proxies += [litellm] if options.litellm else []
    results = []
    for open_proxy in proxies:
        async with upstream() as port, open_proxy(port, options) as proxy:
            results.append(await measure(proxy, options))
    return results


def show(results: list[Result], options: argparse.Namespace) -> None:
    title = (
        f"{options.calls} calls, {options.concurrency} at a time: request"
        f" {len(request_body(0)) / 1000:.0f} KB, reply {len(reply_body()) / 1000:.0f} KB"
    )
    table = Table(title=title)
    for column in ("proxy", "CPU ms a call", "x ours", "p50 ms", "MB before", "MB after"):
        table.add_column(column, justify="left" if column == "proxy" else "right")
    for result in results:
        table.add_row(
            result.name,
            f"{result.cpu_ms:.2f}",
            f"{result.cpu_ms / results[0].cpu_ms:.1f}",
            f"{result.p50_ms:.1f}",
            *(f"{megabytes:.0f}" for megabytes in result.megabytes),
        )
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--session", type=int, default=100, help="calls per episode")
    parser.add_argument(
        "--litellm", metavar="VENV", help="virtual environment with LiteLLM's proxy"
    )
    parser.add_argument("--agent-lightning", metavar="VENV", help="one with agentlightning")
    parser.add_argument("--serve", choices=("upstream", "ours"), help=argparse.SUPPRESS)
    parser.add_argument("--upstream", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve == "upstream":
        asyncio.run(serve_upstream())
    elif options.serve == "ours":
        asyncio.run(serve_ours(options.upstream, options.session))
    else:
        show(asyncio.run(compare(options)), options)


if __name__ == "__main__":
    main()
