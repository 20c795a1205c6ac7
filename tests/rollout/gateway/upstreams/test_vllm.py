"""Starting a vLLM server, with a stand-in for the interpreter that has one."""

import asyncio
import os
import select
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from rollout.errors import ModelError, UsageError
from rollout.gateway.upstream import ModelRequest
from rollout.gateway.upstreams import vllm
from rollout.gateway.upstreams.vllm import VLLM, interpreter
from rollout.types import Task

ROOT = Path(__file__).parents[4]

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
            told = {{"version": "0.32.0"}} if self.path == "/version" else None
            entry = {{"id": value("--served-model-name"), "owned_by": "vllm", "max_model_len": 512}}
            status, body = 200, json.dumps(told or {{"data": [entry]}}).encode()
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
echo "    For further information visit us" >&2
echo >&2
exit 3
"""


STARTER = """\
import asyncio
from rollout.gateway.upstreams.vllm import VLLM

async def main():
    upstream = VLLM.from_spec("tiny", "")
    await upstream.check()
    print(upstream._process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def python(tmp_path, monkeypatch):
    def write(text):
        path = tmp_path / "python"
        path.write_text(text.format(python=sys.executable))
        path.chmod(0o755)
        monkeypatch.setenv("ANYHARNESS_VLLM_PYTHON", str(path))
        monkeypatch.setenv("ANYHARNESS_VLLM_ARGS", "--max-model-len 512")
        monkeypatch.setattr(vllm, "POLL_SECONDS", 0.02)

    return write


async def test_the_server_is_started_awaited_and_ended(python):
    python(SERVER)
    upstream = VLLM.from_spec("/models/tiny-qwen", "")
    await upstream.check()
    process = upstream._process
    assert (upstream.model, upstream.context_window) == ("tiny-qwen", 512)
    assert os.getpgid(process.pid) == process.pid
    await upstream.close()
    assert process.returncode is not None
    await upstream.close()


async def test_one_that_dies_says_why(python):
    python(FAILURE)
    with pytest.raises(UsageError, match=r"exit 3.*ValueError: no such folder: /models/none;"):
        await VLLM.from_spec("/models/none", "").check()


async def test_one_that_hangs_is_given_up(python, monkeypatch):
    monkeypatch.setattr(vllm, "START_SECONDS", 0.1)
    python("#!/bin/sh\nexec sleep 60\n")
    upstream = VLLM.from_spec("m", "")
    with pytest.raises(UsageError, match="not ready"):
        await upstream.check()
    assert upstream._process is None


async def test_cancelling_the_start_leaves_nothing_behind(python):
    python("#!/bin/sh\nexec sleep 60\n")
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


async def test_once_it_has_ended_nobody_waits_for_it(python):
    python(SERVER)
    upstream = VLLM.from_spec("/models/tiny", "")
    await upstream.check()
    os.killpg(upstream._process.pid, signal.SIGKILL)
    await upstream._process.wait()
    with pytest.raises(ModelError, match=r"vLLM ended \(exit -9\)") as raised:
        await upstream.complete(ModelRequest("chat", {"messages": []}, Task(id="t", prompt="p")))
    assert type(raised.value) is ModelError  # not Transient, which would be tried again
    await upstream.close()


async def test_its_fingerprint_is_the_same_after_a_restart(python):
    python(SERVER)
    told = []
    for _ in range(2):
        upstream = VLLM.from_spec("/models/tiny", "")
        await upstream.check()
        told.append(upstream.fingerprint())
        await upstream.close()
    assert told[0] == told[1]
    assert told[0]["version"] == "0.32.0"
    assert told[0]["path"] == "/models/tiny"
    assert told[0]["arguments"] == "--max-model-len 512"


def test_its_fingerprint_tells_no_key(monkeypatch):
    monkeypatch.setenv("ANYHARNESS_VLLM_ARGS", "--api-key sk-1 --hf-token=hf-2 --seed 3")
    told = VLLM.from_spec("tiny", "").fingerprint()["arguments"]
    assert told == "--api-key <hidden> --hf-token=<hidden> --seed 3"


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv (util-linux)")
def test_a_run_that_is_killed_leaves_no_server_behind(python):
    python(SERVER)
    run = subprocess.Popen([sys.executable, "-c", STARTER], cwd=ROOT, stdout=subprocess.PIPE)
    with run:
        server = os.pidfd_open(int(run.stdout.readline()))
        run.kill()
    ended, _, _ = select.select([server], [], [], 60)
    os.close(server)
    assert ended


def test_which_interpreter_is_taken(monkeypatch, tmp_path):
    monkeypatch.delenv("ANYHARNESS_VLLM_PYTHON", raising=False)
    monkeypatch.setattr(vllm, "PROJECT", tmp_path)
    monkeypatch.setattr(vllm, "find_spec", lambda name: None)
    assert interpreter() == sys.executable
    made = tmp_path / ".venv-vllm" / "bin" / "python"
    made.parent.mkdir(parents=True)
    made.symlink_to(sys.executable)
    assert interpreter() == str(made)
    monkeypatch.setattr(vllm, "find_spec", lambda name: object())
    assert interpreter() == sys.executable
    monkeypatch.setenv("ANYHARNESS_VLLM_PYTHON", str(made))
    assert interpreter() == str(made)


async def test_an_interpreter_that_is_not_there(monkeypatch):
    monkeypatch.setenv("ANYHARNESS_VLLM_PYTHON", "/nowhere/python")
    with pytest.raises(UsageError, match="ANYHARNESS_VLLM_PYTHON: /nowhere/python is no exec"):
        await VLLM.from_spec("m", "").check()


def test_from_spec():
    assert VLLM.from_spec("m", "http://127.0.0.1:1/v1")._path == ""
    with pytest.raises(UsageError, match="vllm:PATH"):
        VLLM.from_spec("", "")
