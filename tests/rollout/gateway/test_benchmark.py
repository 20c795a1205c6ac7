"""The gateway benchmark runs, and what it is for: a closed session leaves nothing behind."""

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

from support.gateways import connected, episode, said
from support.scripted_server import ScriptedServer

ROOT = Path(__file__).parents[3]


def test_the_benchmark_runs():
    argv = [sys.executable, "benchmarks/gateway.py", "--calls", "20", "--session", "10"]
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "AnyHarness gateway" in done.stdout


async def test_a_closed_session_is_forgotten():
    async with ScriptedServer() as server, episode(server, grace=0.0) as client:
        other = connected(client.gateway, client.http)
        for n in range(3):
            await other.ask(said(str(n)))
        client.gateway.close(other.session)
        gone = weakref.ref(other.session)
        del other
        await asyncio.sleep(0)
        gc.collect()
        assert gone() is None
