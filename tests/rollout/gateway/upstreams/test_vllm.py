"""Starting a vLLM server, with a stand-in for the interpreter that has one."""

import asyncio
import os
import sys
from contextlib import suppress

import pytest

from rollout.errors import UsageError
from rollout.gateway.upstreams import vllm
from rollout.gateway.upstreams.vllm import VLLM

SERVER = """\
#!{python}
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
arguments = sys.argv[1:]
assert arguments[:2] == ["-m", "vllm.entrypoints.openai.api_server"], arguments
value = lambda name: arguments[arguments.index(name) + 1]
assert value("--max-model-len") == "512"
class Handler(BaseHTTPRequestHandler):
    healthy = False
    def do_GET(self):
        if self.path == "/health":
            status, body = (200 if Handler.healthy else 503), b""
            Handler.healthy = True
        else:
            entry = {{"id": value("--served-model-name"), "owned_by": "vllm", "max_model_len": 512}}
            status, body = 200, json.dumps({{"data": [entry]}}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
HTTPServer((value("--host"), int(value("--port"))), Handler).serve_forever()
"""

FAILURE = """\
#!/bin/sh
echo loading
echo "ValueError: no such folder: $4" >&2
echo >&2
exit 3
"""


@pytest.fixture
def interpreter(tmp_path, monkeypatch):
    def write(text):
        path = tmp_path / "python"
        path.write_text(text.format(python=sys.executable))
        path.chmod(0o755)
        monkeypatch.setenv("ANYHARNESS_VLLM_PYTHON", str(path))
        monkeypatch.setenv("ANYHARNESS_VLLM_ARGS", "--max-model-len 512")
        monkeypatch.setattr(vllm, "POLL_SECONDS", 0.02)

    return write


async def test_the_server_is_started_awaited_and_ended(interpreter):
    interpreter(SERVER)
    upstream = VLLM.from_spec("/models/tiny-qwen", "")
    await upstream.check()
    process = upstream._process
    assert (upstream.model, upstream.context_window) == ("tiny-qwen", 512)
    assert os.getpgid(process.pid) == process.pid
    await upstream.close()
    assert process.returncode is not None
    await upstream.close()


async def test_one_that_dies_says_why(interpreter):
    interpreter(FAILURE)
    with pytest.raises(UsageError, match=r"exit 3.*ValueError: no such folder: /models/none;"):
        await VLLM.from_spec("/models/none", "").check()


async def test_one_that_hangs_is_given_up(interpreter, monkeypatch):
    monkeypatch.setattr(vllm, "START_SECONDS", 0.1)
    interpreter("#!/bin/sh\nexec sleep 60\n")
    upstream = VLLM.from_spec("m", "")
    with pytest.raises(UsageError, match="not ready"):
        await upstream.check()
    assert upstream._process is None


async def test_cancelling_the_start_leaves_nothing_behind(interpreter):
    interpreter("#!/bin/sh\nexec sleep 60\n")
    upstream = VLLM.from_spec("m", "")
    checking = asyncio.create_task(upstream.check())
    while upstream._process is None:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.01)
    pid = upstream._process.pid
    checking.cancel()
    with suppress(asyncio.CancelledError):
        await checking
    with pytest.raises(ProcessLookupError):
        os.killpg(pid, 0)


async def test_an_interpreter_that_is_not_there(monkeypatch):
    monkeypatch.setenv("ANYHARNESS_VLLM_PYTHON", "/nowhere/python")
    with pytest.raises(UsageError, match="ANYHARNESS_VLLM_PYTHON: /nowhere/python does not start"):
        await VLLM.from_spec("m", "").check()


def test_from_spec():
    assert VLLM.from_spec("m", "http://127.0.0.1:1/v1")._path == ""
    with pytest.raises(UsageError, match="vllm:PATH"):
        VLLM.from_spec("", "")
