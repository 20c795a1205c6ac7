"""The part of `openclaw_gateway.py` that runs in the sandbox: standard library only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SECRET = "secret-of-the-first"
FILES = f"grep -rlaE '{SECRET[:-1]}[t]' ~/.openclaw /workspace /tmp"
QUIET = 8
"""Seconds after which a gateway that is ready has done what it does in the background."""


def cpu() -> float:
    """Seconds of all processes of the sandbox but this one, and of those that they waited for."""
    ticks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        if int(name) not in (1, os.getpid()):
            try:
                with open(f"/proc/{name}/stat") as file:
                    ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
            except OSError:
                continue
    own = os.times()
    return ticks / os.sysconf("SC_CLK_TCK") + own.children_user + own.children_system


@contextmanager
def measured(name: str) -> Iterator[None]:
    wall, before = time.monotonic(), cpu()
    yield
    wall = time.monotonic() - wall
    time.sleep(1)
    print(f"{name:32} {wall:6.1f} s {cpu() - before:6.1f} s CPU", flush=True)


def ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def session(url: str, name: str, text: str) -> str:
    """One episode as a session of the gateway: what its agent said."""
    body = {"model": "openclaw", "messages": [{"role": "user", "content": text}]}
    headers = {
        "Authorization": "Bearer token",
        "Content-Type": "application/json",
        "x-openclaw-session-key": name,
    }
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps(body).encode(), headers
    )
    with urllib.request.urlopen(request) as reply:
        return str(json.load(reply)["choices"][0]["message"]["content"])


def memory() -> None:
    """Print how often the secret is in the gateway's memory, and whether it could be changed there."""
    needle = SECRET.encode()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with open(f"/proc/{name}/cmdline", "rb") as file:
            if not file.read().startswith(b"openclaw-gateway"):
                continue
        places = list(found(name, needle))
        with open(f"/proc/{name}/mem", "r+b", buffering=0) as file:
            file.seek(places[0])
            written = file.write(needle)
        print(f"{len(places)} regions of the gateway's memory have it; wrote {written} bytes there")


def found(pid: str, needle: bytes) -> Iterator[int]:
    """An address of `needle` in each region of a process's own data."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        for line in maps:
            span, mode, *rest = line.split()
            start, end = (int(number, 16) for number in span.split("-"))
            if mode.startswith("rw") and len(rest) == 3:
                file.seek(start)
                at = file.read(end - start).find(needle)
                if at >= 0:
                    yield start + at


def main(order: dict[str, Any]) -> None:
    for _ in range(2):
        with measured("agent exec"):
            subprocess.run(order["exec"], check=True, capture_output=True)
    url = order["url"]
    env = {**os.environ, "OPENCLAW_CONFIG_PATH": order["config"], "OPENCLAW_DISABLE_BONJOUR": "1"}
    with open(os.devnull, "wb") as null, measured("gateway: start"):
        gateway = subprocess.Popen(order["gateway"], env=env, stdout=null, stderr=null)
        while gateway.poll() is None and not ready(url):
            time.sleep(0.2)
        time.sleep(QUIET)
    for number in range(4):
        text = f"{SECRET if number == 0 else ''} RUN: echo done"
        with measured(f"gateway: session {number + 1}"):
            session(url, f"episode-{number}", text)
    print("its files:", session(url, "files", f"RUN: {FILES}").split())
    print("its memory:", session(url, "memory", f"RUN: python3 {__file__}"))
    gateway.terminate()


if __name__ == "__main__":
    main(json.loads(sys.argv[1])) if len(sys.argv) > 1 else memory()
