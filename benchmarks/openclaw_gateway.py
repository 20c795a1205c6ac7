"""What one OpenClaw gateway for many episodes would save, and what an agent would find in it.

    python benchmarks/openclaw_gateway.py [slim]

Two model calls and one shell command an episode: by `openclaw agent exec`, as the harness runs it, and as
sessions of one `openclaw gateway run`. All in a bubblewrap sandbox, with a scripted model. At the end the
agent of the last session looks for the first one's prompt: in files, and in the gateway's memory.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from aiohttp import web

from harness_wrappers.openclaw import OpenClaw
from rollout.harness import Endpoint, Job
from rollout.sandbox import SandboxSpec
from rollout.sandboxes.bubblewrap import Bubblewrap
from rollout.types import JsonObject

INSIDE = Path(__file__).with_name("_openclaw_sessions.py")
PORT = 18955
GATEWAY: JsonObject = {
    "mode": "local",
    "port": PORT,
    "bind": "loopback",
    "auth": {"mode": "token", "token": "token"},
    "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
}


async def answer(request: web.Request) -> web.StreamResponse:
    """Run what the user's last message says after `RUN: `, then repeat the output."""
    messages = (await request.json())["messages"]
    commands = [(n, found[1]) for n, m in enumerate(messages) if (found := _command(m))]
    at, command = commands[-1]
    outputs = [_text(message) for message in messages[at:] if message["role"] == "tool"]
    function = {"name": "exec", "arguments": json.dumps({"command": command, "yieldMs": 90_000})}
    call = {"index": 0, "id": "call", "type": "function", "function": function}
    delta = {"content": outputs[-1]} if outputs else {"tool_calls": [call]}
    reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await reply.prepare(request)
    await reply.write(b"".join(_chunks(delta, "stop" if outputs else "tool_calls")))
    return reply


def _chunks(delta: JsonObject, finish: str) -> Iterable[bytes]:
    for part, reason in (({"role": "assistant", **delta}, None), ({}, finish)):
        choice = {"index": 0, "delta": part, "finish_reason": reason}
        chunk = {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}
        yield f"data: {json.dumps(chunk)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _command(message: JsonObject) -> re.Match[str] | None:
    return re.search(r"RUN: (.*)", _text(message)) if message["role"] == "user" else None


def _text(message: JsonObject) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


async def measure(preset: str, socket: Path) -> str:
    """What the sandbox printed."""
    harness = OpenClaw(preset=preset)
    await harness.prepare()
    spec = SandboxSpec(socket, gateway_port=0, programs=harness.program_folders)
    async with Bubblewrap().open(spec) as sandbox:
        endpoint = Endpoint(f"{sandbox.gateway}/e", key="key", model="scripted")
        launch = harness.launch(Job("RUN: echo done", endpoint, surface="skill"), sandbox)
        config = f"{sandbox.home}/gateway.json"
        settings = json.loads(launch.files[f"{sandbox.home}/.openclaw/openclaw.json"])
        order = {
            "exec": launch.argv,
            "gateway": (*harness.command, "gateway", "run", "--port", str(PORT)),
            "config": config,
            "url": f"http://127.0.0.1:{PORT}",
        }
        script = f"{sandbox.home}/sessions.py"
        files = {script: INSIDE.read_text(), config: json.dumps(settings | {"gateway": GATEWAY})}
        await sandbox.write({**launch.files, **files})
        argv = ("python3", script, json.dumps(order))
        result = await sandbox.exec(argv, env=launch.env)
    return (result.stdout + result.stderr).decode(errors="replace")


async def main(preset: str) -> None:
    application = web.Application(client_max_size=1 << 26)
    application.router.add_post("/e/v1/chat/completions", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "model.sock"
        await web.UnixSite(runner, str(socket)).start()
        print(await measure(preset, socket), end="")
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or ["slim"]))
