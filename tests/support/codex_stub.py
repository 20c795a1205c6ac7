"""What the tests with the real Codex need: a scripted model server, an MCP server, its settings."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from rollout.gateway.dialects import DIALECTS

ROOT = Path(__file__).parents[2]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""One pixel: Codex looks into images before it sends them."""

TOOLS = [
    {
        "name": "get_weather",
        "description": "Weather of a city.",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
    {"name": "get_picture", "inputSchema": {"type": "object", "properties": {}}},
]
ANSWERS = {
    "get_weather": [{"type": "text", "text": "sunny"}],
    "get_picture": [
        {"type": "text", "text": "the sky:"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
    ],
}
CATALOG = {
    "slug": "scripted",
    "display_name": "scripted",
    "description": "A scripted model",
    "supported_reasoning_levels": [],
    "shell_type": "unified_exec",
    "visibility": "list",
    "supported_in_api": True,
    "priority": 1,
    "additional_speed_tiers": [],
    "service_tiers": [],
    "availability_nux": None,
    "upgrade": None,
    "default_reasoning_summary": "none",
    "support_verbosity": False,
    "apply_patch_tool_type": "freeform",
    "truncation_policy": {"mode": "tokens", "limit": 10000},
    "context_window": 131072,
    "max_context_window": 131072,
    "effective_context_window_percent": 95,
    "experimental_supported_tools": [],
    "input_modalities": ["text", "image"],
    "base_instructions": "You are a coding agent.",
}
CONFIG = """
model = "scripted"
model_provider = "proxy"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"
model_reasoning_summary = "none"
model_catalog_json = "{home}/catalog.json"
[model_providers.proxy]
name = "proxy"
base_url = "{url}/v1"
env_key = "PROXY_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = {idle_ms}
supports_websockets = false
[analytics]
enabled = false
[skills.bundled]
enabled = false
[agents]
enabled = false
[features]
goals = false
shell_snapshot = false
apps = false
plugins = false
unbounded_connection_retries = false
[mcp_servers.wx]
url = "{url}/mcp"
"""


def codex_binary() -> Path:
    """The vendored Codex of node_modules, or a skip."""
    found = sorted(ROOT.glob("node_modules/@openai/codex-*/vendor/*/bin/codex"))
    if not found:
        pytest.skip("Codex is not installed: npm ci")
    return found[0]


@dataclass
class Stub:
    """Answers `/v1/responses` from chat replies through the dialect, one reply a turn."""

    script: Sequence[dict]
    before: Callable[[int, web.StreamResponse, dict], object] | None = None
    """Awaited after a turn's stream is opened, with turn, stream and body; true ends the stream."""
    bodies: list[dict] = field(default_factory=list)
    chats: list[dict] = field(default_factory=list)

    async def responses(self, request: web.Request) -> web.StreamResponse:
        dialect, body = DIALECTS["responses"], await request.json()
        chat, memory = dialect.to_chat(body)
        turn = len(self.bodies)
        self.bodies.append(body)
        self.chats.append(chat)
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(dialect.opening(body))
        if self.before is None or not await self.before(turn, stream, body):
            reply = dialect.from_chat(self.script[turn], body, memory)
            await stream.write(b"".join(dialect.events(reply, body)))
        return stream

    async def mcp(self, request: web.Request) -> web.Response:
        """MCP over streamable HTTP, as little of it as Codex needs."""
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        parameters = message.get("params") or {}
        results = {
            "initialize": lambda: {
                "protocolVersion": parameters["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "wx", "version": "1"},
                "instructions": "Ask here for the weather.",
            },
            "tools/list": lambda: {"tools": TOOLS},
            "tools/call": lambda: {"content": ANSWERS[parameters["name"]]},
        }
        result = results.get(message["method"], dict)()
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})


@asynccontextmanager
async def serving(stub: Stub) -> AsyncIterator[str]:
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/responses", stub.responses)
    app.router.add_route("*", "/mcp", stub.mcp)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def run_codex(stub: Stub, folder: Path, idle_ms: int = 60_000) -> tuple[int, list[dict]]:
    """Run `codex exec` in `folder/work` against the stub; its exit code and events."""
    home, work = folder / "codex", folder / "work"
    home.mkdir()
    work.mkdir()
    (home / "catalog.json").write_text(json.dumps({"models": [CATALOG]}))
    async with serving(stub) as url:
        config = CONFIG.format(home=home, url=url, idle_ms=idle_ms)
        (home / "config.toml").write_text(config)
        process = await asyncio.create_subprocess_exec(
            *(codex_binary(), "exec", "--json", "--skip-git-repo-check", "--ephemeral"),
            *("--strict-config", "-C", work, "--", "Do it"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "CODEX_HOME": str(home),
                "PROXY_API_KEY": "k",
            },
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), 120)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return process.returncode or 0, [json.loads(line) for line in out.splitlines()]
