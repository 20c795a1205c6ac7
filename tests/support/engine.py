"""A real vLLM server, and the means to check what it says of tokens against the model itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from rollout.environment import Environment
from rollout.episode import Setup, run_episode
from rollout.gateway.server import Gateway
from rollout.gateway.upstream import ModelReply, ModelRequest
from rollout.gateway.upstreams.vllm import MODULE, VLLM, free_port
from rollout.harness import Harness
from rollout.sandbox import SandboxProvider
from rollout.types import Call, Episode, JsonObject, Task, ToolSurface, Trace

__all__ = [
    "ARGUMENTS",
    "ENVIRONMENT",
    "Engine",
    "Recorded",
    "Scorer",
    "Watched",
    "build_model",
    "ints",
    "record",
]

SUPPORT = Path(__file__).parent

ARGUMENTS = [
    *("--dtype", "float32", "--enforce-eager", "--max-model-len", "32768"),
    *("--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3"),
]

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
"""The cache's size is in GiB."""

START_SECONDS = 600.0


class Engine:
    """A vLLM server for the length of a `with`; its output is in `folder`."""

    def __init__(self, python: str, model: Path, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._argv = [python, "-m", MODULE, "--model", str(model), "--served-model-name", "tiny"]
        self._argv += ["--host", "127.0.0.1", "--port", str(self.port), *ARGUMENTS]
        self._log = folder / "engine.log"

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._argv,
                stdout=log,
                stderr=log,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._healthy():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"vLLM did not start:\n{self._log.read_text()[-4000:]}")
            time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(20)

    def post(self, path: str, body: JsonObject) -> Any:
        """A request to the server itself, without any gateway."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def tokenize(self, chat: JsonObject) -> list[int]:
        """The prompt of a chat request by the server's own `/tokenize`, which knows `reasoning` only."""
        fields = ("messages", "tools", "chat_template_kwargs")
        body = {"model": "tiny"} | {name: chat[name] for name in fields if name in chat}
        body["messages"] = [
            {("reasoning" if name == "reasoning_content" else name): m[name] for name in m}
            for m in chat["messages"]
        ]
        tokens: list[int] = self.post("/tokenize", body)["tokens"]
        return tokens

    def detokenize(self, tokens: Sequence[int]) -> str:
        text: str = self.post("/detokenize", {"model": "tiny", "tokens": tokens})["prompt"]
        return text

    def _healthy(self) -> bool:
        with suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health") as response:
                return bool(response.status == 200)
        return False


class Scorer:
    """Log-probabilities by transformers, in float32, from the checkpoint itself."""

    def __init__(self, python: str, model: Path) -> None:
        self._process = subprocess.Popen(
            [python, str(SUPPORT / "score_tokens.py"), str(model)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    def score(self, prompt: Sequence[int], response: Sequence[int]) -> np.ndarray:
        """Of each token of the response, given all that came before it."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        print(json.dumps([list(prompt), list(response)]), file=stdin, flush=True)
        return np.array(json.loads(stdout.readline()))


class Watched(VLLM):
    """The real upstream, which also keeps the chat requests that it was given."""

    def __init__(self, model: str, base_url: str, key: str = "") -> None:
        super().__init__(model, base_url, key)
        self.bodies: list[JsonObject] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.bodies.append(request.body)
        return await super().complete(request)


@dataclass(frozen=True)
class Recorded:
    """An episode, and what the server was asked for each of its calls."""

    episode: Episode
    trace: Trace
    bodies: list[JsonObject] = field(default_factory=list)

    @property
    def pairs(self) -> Iterable[tuple[Call, JsonObject]]:
        return zip(self.trace.calls, self.bodies, strict=True)


def record(
    engine: Engine,
    harness: Harness,
    environment: Environment,
    surface: ToolSurface,
    sandboxes: SandboxProvider,
    task: Task,
    **options: Any,
) -> Recorded:
    """Run an episode through a gateway with these options."""

    async def run() -> Recorded:
        upstream = Watched("tiny", engine.url)
        try:
            await upstream.check()
            async with Gateway(upstream, **options) as gateway:
                setup = Setup(environment, harness, gateway, sandboxes, surface)
                return Recorded(*await run_episode(setup, task, 0), upstream.bodies)
        finally:
            await upstream.close()

    return asyncio.run(run())


def ints(data: bytes) -> list[int]:
    ids: list[int] = np.frombuffer(data, "<i4").tolist()
    return ids


def build_model(python: str, folder: Path) -> None:
    """Write the tiny model."""
    subprocess.run(
        [python, str(SUPPORT / "tiny_model.py"), str(folder)],
        check=True,
        stdout=sys.stderr,
        env={**os.environ, **ENVIRONMENT},
    )
