"""A real vLLM behind the gateway: every dialect, its limits, and its death in the middle of a run."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI, BadRequestError
from support.engine import ARGUMENTS, ENVIRONMENT, Engine, Watched
from support.gateways import Client, episode, said

from rollout.gateway.upstreams.vllm import MODULE
from rollout.store import EpisodeStore
from rollout.types import Episode, Outcome

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
WINDOW = 32_768
PLAIN = {"chat_template_kwargs": {"enable_thinking": False}}
CLOCK = {"name": "clock_now", "description": "The time.", "parameters": {"type": "object"}}


@asynccontextmanager
async def session(engine: Engine, **options: Any) -> AsyncIterator[Client]:
    upstream = Watched("tiny", engine.url)
    try:
        await upstream.check()
        async with episode(upstream, sampling={"temperature": 0.0}, **options) as client:
            yield client
    finally:
        await upstream.close()


@asynccontextmanager
async def openai(client: Client) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{client.base}/v1", api_key=client.session.key) as sdk:
        yield sdk


async def chat(client: Client) -> list[Any]:
    function = {"type": "function", "function": CLOCK}
    asked: Any = {"model": "tiny", "messages": said("几点了？")["messages"], "tools": [function]}
    async with openai(client) as sdk:
        whole = await sdk.chat.completions.create(**asked)
        async with sdk.chat.completions.stream(**asked) as stream:
            streamed = await stream.get_final_completion()
    return [
        (
            m.reasoning_content,
            m.content,
            [(c.function.name, c.function.arguments) for c in m.tool_calls],
        )
        for m in (each.choices[0].message for each in (whole, streamed))
    ]


async def responses(client: Client) -> list[Any]:
    tool = {"type": "function", "strict": False, **CLOCK}
    asked: Any = {"model": "tiny", "input": "几点了？", "tools": [tool]}
    async with openai(client) as sdk:
        whole = await sdk.responses.create(**asked)
        async with sdk.responses.stream(**asked) as stream:
            streamed = await stream.get_final_response()
    return [
        (thought.content[0].text, None, [(call.name, call.arguments)])
        for thought, call in (each.output for each in (whole, streamed))
    ]


async def messages(client: Client) -> list[Any]:
    tool = {"name": "clock_now", "description": "The time.", "input_schema": {"type": "object"}}
    asked: Any = {"model": "tiny", "max_tokens": 50, "tools": [tool]}
    asked["messages"] = said("几点了？")["messages"]
    async with AsyncAnthropic(base_url=client.base, api_key=client.session.key) as sdk:
        whole = await sdk.messages.create(**asked)
        async with sdk.messages.stream(**asked) as stream:
            streamed = await stream.get_final_message()
    return [
        (thought.thinking, None, [(call.name, json.dumps(call.input))])
        for thought, call in (each.content for each in (whole, streamed))
    ]


@pytest.mark.parametrize("ask", [chat, responses, messages])
async def test_streamed_and_whole_are_the_same(ask, engine: Engine):
    async with session(engine) as client:
        whole, streamed = await ask(client)
        first, second = client.session.calls
    assert whole == streamed == (" nine", None, [("clock_now", "{}")])
    assert first.response_ids == second.response_ids
    assert first.prompt_ids == second.prompt_ids
    assert len(first.logprobs) == len(second.logprobs) == len(first.response_ids) > 0


async def test_all_dialects_show_the_model_the_same(engine: Engine):
    async with session(engine) as client:
        for dialect in ("chat", "responses", "messages"):
            await client.ask(said("几点了？", dialect), dialect)
        calls = client.session.calls
    assert len({(call.prompt_ids, call.response_ids) for call in calls}) == 1


def filling(engine: Engine, left: int) -> str:
    """A text that leaves this many tokens for the reply: every digit is one."""
    empty = len(engine.tokenize(said("")))
    return "7" * (WINDOW - empty - left)


@pytest.mark.parametrize("left", [0, -1, -2_000_000])
async def test_a_prompt_that_leaves_no_room_is_a_context_overflow(left: int, engine: Engine):
    async with session(engine) as client, openai(client) as sdk:
        with pytest.raises(BadRequestError) as raised:
            await sdk.chat.completions.create(**said(filling(engine, left)))
        (call,) = client.session.calls
    assert raised.value.code == "context_length_exceeded"
    assert call.finish == "context"
    assert client.session.refused == ""


@pytest.mark.parametrize("asked", [100, 10 * WINDOW])
async def test_a_reply_gets_the_room_that_is_left(asked: int, engine: Engine):
    async with session(engine, max_output=10 * WINDOW) as client:
        status, _ = await client.ask(said(filling(engine, 3), max_tokens=asked))
        (call,) = client.session.calls
    assert (status, call.finish) == (200, "length")
    assert len(call.response_ids) == len(call.logprobs) == 4 * 3


async def test_prompts_are_counted_as_they_will_be_asked(engine: Engine):
    thought = {"type": "thinking", "thinking": "because", "signature": ""}
    turns = [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": [thought, {"type": "tool_use", "id": "1", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
    ]
    body = {"model": "tiny", "messages": turns}
    async with session(engine) as client:
        headers = {"x-api-key": client.session.key}
        url = f"{client.base}/v1/messages/count_tokens"
        async with client.http.post(url, json=body, headers=headers) as response:
            counted = (await response.json())["input_tokens"]
        await client.ask(body | {"max_tokens": 5}, "messages")
        (call,) = client.session.calls
    assert counted == call.usage.prompt == len(call.prompt_ids) // 4


class Run:
    """`python -m suites.claweval --model vllm:PATH`, in processes of its own."""

    def __init__(self, python: str, model: Path, folder: Path) -> None:
        self.folder = folder
        self.stopped: list[Episode] = []
        """What there was when the server had been killed."""
        self.code: int | None = None
        arguments = [*ARGUMENTS, "--default-chat-template-kwargs", '{"enable_thinking": false}']
        self._environment = {
            **os.environ,
            **ENVIRONMENT,
            "ANYHARNESS_VLLM_PYTHON": python,
            "ANYHARNESS_VLLM_ARGS": shlex.join(arguments),
        }
        self._argv = [sys.executable, "-m", "suites.claweval", "--model", f"vllm:{model}"]
        self._argv += [
            "--out",
            str(folder),
            "--tasks",
            "2",
            "--attempts",
            "8",
            "--sandbox",
            "local",
        ]
        self._argv += ["--max-tokens", "16", "--concurrency", "1", "--quiet"]

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self._argv, *more], cwd=ROOT, env=self._environment)

    def latest(self) -> list[Episode]:
        with EpisodeStore.read(self.folder) as store:
            return list(store.latest().values())


def server_of(run: int) -> int:
    """The vLLM process that a run started."""
    for child in Path(f"/proc/{run}/task/{run}/children").read_text().split():
        if MODULE.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("the run has no vLLM")


def wait_for_an_episode(run: subprocess.Popen[bytes], folder: Path) -> None:
    episodes = folder / "episodes.jsonl"
    while not (episodes.exists() and episodes.stat().st_size):
        assert run.poll() is None
        time.sleep(0.02)


@pytest.fixture(scope="module")
def run(engine_python: str, tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run whose server was killed, and which went on with another one."""
    run = Run(engine_python, tiny, tmp_path_factory.mktemp("run") / "run")
    with run.start() as first:
        wait_for_an_episode(first, run.folder)
        os.killpg(server_of(first.pid), signal.SIGKILL)
    run.stopped, run.code = run.latest(), first.returncode
    with run.start("--resume") as second:
        pass
    assert second.returncode == 0
    return run


def test_a_server_that_is_killed_is_an_infrastructure_error(run: Run):
    assert run.code == 1
    outcomes = {episode.outcome for episode in run.stopped}
    assert Outcome.INFRA_ERROR in outcomes
    assert len(outcomes) > 1
    for failed in run.stopped:
        if failed.outcome is Outcome.INFRA_ERROR:
            assert failed.cause == "model"
            assert "vLLM ended (exit -9)" in failed.reason


def test_the_run_goes_on_with_a_new_server(run: Run):
    assert len(run.latest()) == 16
    assert all(episode.outcome.graded for episode in run.latest())
    kept = {episode.id for episode in run.stopped if episode.outcome.graded}
    assert kept <= {episode.id for episode in run.latest()}


@pytest.mark.parametrize("purpose", [["rl"], ["sft", "--failed"]])
def test_its_exports_hold_what_was_recorded(purpose: list[str], run: Run, tmp_path: Path):
    file = tmp_path / "rows.jsonl"
    argv = [sys.executable, "-m", "train.export", str(run.folder), "--for", *purpose]
    subprocess.run([*argv, "--out", str(file), "--verify"], cwd=ROOT, check=True)
    assert file.read_bytes().count(b"\n") >= 2
