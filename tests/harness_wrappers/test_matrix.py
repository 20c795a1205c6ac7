"""Every harness in every kind of trouble: outcome and cause are right, and no retry is provoked.

Pairwise: each harness meets each ending once, each ending meets each tool surface. The program is the
real one, behind the real gateway; the model server is scripted.
"""

import asyncio
import json
import os
import re
import signal
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.gateways import QUICK, upstream_of
from support.scripted_server import Drop, Fail, Reply, ScriptedServer, Stall, text, tool_call
from support.toys import Notes, note_task

from rollout.episode import Setup, run_episode
from rollout.errors import UsageError
from rollout.gateway.server import Gateway
from rollout.gateway.upstream import ModelReply, Upstream
from rollout.gateway.upstreams.reference import Reference
from rollout.harness import Harness
from rollout.plugins import load
from rollout.sandboxes.local import Local
from rollout.types import Outcome, Usage

SHELL = {
    "codex": ("exec_command", "cmd"),
    "claude_code": ("Bash", "command"),
    "kimi_code": ("Bash", "command"),
    "openclaw": ("exec", "command"),
    "opencode": ("bash", "command"),
    "react": ("bash", "command"),
}
NOTES = {"react": "notes_add", "opencode": "tools_notes_add"}
SPAWN = {
    "codex": ("multi_agent_v1__spawn_agent", {"message": "say hi"}),
    "claude_code": (
        "Agent",
        {"description": "hi", "prompt": "say hi", "subagent_type": "general-purpose"},
    ),
    "kimi_code": (
        "Agent",
        {"description": "hi", "prompt": "say hi", "subagent_type": "coder"},
    ),
    "opencode": ("task", {"description": "hi", "prompt": "say hi", "subagent_type": "general"}),
}
AGENT = re.compile(r'^\{"agent_id": ?"([^"]+)"')
"""What Codex answers to a spawn."""

TOO_LONG = Fail(
    400, "This model's maximum context length is 4096 tokens.", "context_length_exceeded"
)


@pytest.fixture(scope="module")
def prepared():
    """Harnesses by name, each looked for once."""
    return {}


@pytest.fixture
async def harness(request, prepared):
    name = request.param
    if name not in prepared:
        prepared[name] = load("harness_wrappers", name, Harness)()
        try:
            await prepared[name].prepare()
        except UsageError as error:
            prepared[name] = str(error)
    if isinstance(prepared[name], str):
        pytest.skip(prepared[name])
    return prepared[name]


def cells(ending, *, without=()):
    """Parameters `harness`, `name`, `surface`: every harness, its surfaces taken in turns."""
    made = []
    for number, name in enumerate(("react", *SPAWN, "openclaw")):
        if name not in without:
            surfaces = ("native", "mcp", "skill") if name == "react" else ("mcp", "skill")
            surface = surfaces[(number + ending) % len(surfaces)]
            marks = () if name in ("react", "codex") else pytest.mark.slow
            made.append(pytest.param(name, name, surface, id=f"{name}-{surface}", marks=marks))
    return pytest.mark.parametrize(("harness", "name", "surface"), made, indirect=["harness"])


def act(name, surface):
    """A reply that uses a tool of the task, or on the `skill` surface the shell."""
    if surface == "skill":
        return shell(name, "echo hi")
    if name == "openclaw":
        return tool_call("tool_call", {"id": "tools__notes_add", "args": {"text": "hi"}})
    return tool_call(NOTES.get(name, "mcp__tools__notes_add"), {"text": "hi"})


def shell(name, command, number=0):
    function, argument = SHELL[name]
    return tool_call(function, {argument: command, "description": "x"}, id=f"call_{number}")


def cut(finish, content="I"):
    body = text(content).body
    return Reply({**body, "choices": [{**body["choices"][0], "finish_reason": finish}]})


async def run(harness, surface, upstream, sandboxes=None):
    async with Gateway(upstream, retry=QUICK, keep_alive=0.05) as gateway:
        setup = Setup(Notes(), harness, gateway, sandboxes or Local(), surface)
        return await run_episode(setup, note_task(), 0)


@asynccontextmanager
async def served(*steps, default=None):
    """A scripted model server with these replies, and the upstream that asks it."""
    async with ScriptedServer() as server:
        server.queue(*steps)
        server.default = default or text("done")
        upstream = await upstream_of(server)
        yield server, upstream
        await upstream.close()


@pytest.fixture
def retries(monkeypatch, harness):
    """Signs of a retry in what the harness sends."""
    signs = []
    classify = type(harness).classify

    def spy(headers, body):
        signs.extend((k, v) for k, v in headers.items() if "retry" in k and v not in ("", "0"))
        return classify(headers, body)

    monkeypatch.setattr(harness, "classify", spy, raising=False)
    return signs


@cells(0)
async def test_success(harness, name, surface):
    episode, trace = await run(harness, surface, Reference())
    assert (episode.outcome, episode.cause) == (Outcome.PASSED, "")
    assert trace.answer == "Saved milk."


@cells(1)
async def test_wrong_answer(harness, name, surface):
    async with served() as (_, upstream):
        episode, trace = await run(harness, surface, upstream)
    assert (episode.outcome, episode.cause, trace.answer) == (Outcome.FAILED, "", "done")


@pytest.mark.parametrize("fault", ["error", "drop"])
@cells(2)
async def test_a_fault_that_passes_is_not_seen(harness, name, surface, fault, retries):
    faults = {
        "error": (Fail(500), Fail(429, headers={"Retry-After": "0"})),
        "drop": (Drop(mid_body=True), Drop()),
    }[fault]
    async with served(act(name, surface), *faults) as (server, upstream):
        episode, trace = await run(harness, surface, upstream)
    assert (episode.outcome, episode.cause, trace.answer) == (Outcome.FAILED, "", "done")
    assert [item.tries for item in trace.calls] == [1, 3]
    assert server.requests[1].body == server.requests[2].body == server.requests[3].body
    assert retries == []


@cells(0)
async def test_a_stall_is_waited_for(harness, name, surface, retries):
    stall = Stall(text("done"))
    async with served(act(name, surface), stall) as (server, upstream):
        running = asyncio.create_task(run(harness, surface, upstream))
        await stall.reached.wait()
        stall.released.set()
        episode, trace = await running
    assert (episode.outcome, episode.cause, trace.answer) == (Outcome.FAILED, "", "done")
    assert (len(trace.calls), len(server.requests), retries) == (2, 2, [])


@cells(1)
async def test_a_dead_model_server_is_its_own_fault(harness, name, surface, retries):
    async with served(act(name, surface), default=Fail(503)) as (server, upstream):
        episode, trace = await run(harness, surface, upstream)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "model")
    assert (len(trace.calls), len(server.requests)) == (1, 1 + QUICK.tries)
    assert retries == []


@cells(2, without=["react"])
async def test_a_killed_program_is_the_harness_fault(harness, name, surface):
    homes, stall = [], Stall(text("done"))
    async with served(act(name, surface), stall) as (_, upstream):
        running = asyncio.create_task(run(harness, surface, upstream, Watched(homes)))
        await stall.reached.wait()
        for pid in _processes(harness.command[0], homes[0]):
            os.kill(pid, signal.SIGKILL)
        episode, _ = await running
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "harness")
    assert "signal 9" in episode.reason


@cells(0)
async def test_a_refusal_is_the_policys(harness, name, surface):
    filtered = cut("content_filter")
    async with served(act(name, surface), default=filtered) as (_, upstream):
        episode, _ = await run(harness, surface, upstream)
    assert (episode.outcome, episode.cause) == (Outcome.FAILED, "policy")


@cells(1)
async def test_a_full_context_is_the_policys(harness, name, surface):
    async with served(act(name, surface), default=TOO_LONG) as (_, upstream):
        episode, _ = await run(harness, surface, upstream)
    assert (episode.outcome, episode.cause) == (Outcome.FAILED, "policy")
    assert "context window" in episode.reason


@cells(2)
async def test_replies_that_are_cut_are_the_policys(harness, name, surface):
    async with served(act(name, surface), default=cut("length")) as (_, upstream):
        episode, _ = await run(harness, surface, upstream)
    assert (episode.outcome, episode.cause) == (Outcome.FAILED, "policy")


@cells(0, without=["react", "openclaw"])
async def test_compaction_in_mid_task(harness, name, surface):
    episode, trace = await run(harness, surface, Filling(name))
    assert (episode.outcome, episode.cause, trace.answer) == (Outcome.FAILED, "", "done")
    kinds = [item.kind for item in trace.calls]
    assert kinds == ["main"] * Filling.FULL + ["compaction", "main"]


@cells(1, without=["react", "openclaw"])
async def test_sub_agents(harness, name, surface):
    episode, trace = await run(harness, surface, Delegating(name))
    assert (episode.outcome, episode.cause, trace.answer) == (Outcome.FAILED, "", "done")
    kinds = [item.kind for item in trace.calls]
    assert kinds.count("subagent") == 1
    assert set(kinds) == {"main", "subagent"}


class Filling(Upstream):
    """Works until its usage says that the context is full; then it is done."""

    model = "scripted"
    FULL = 6
    """The call whose usage is nearly the whole window."""

    def __init__(self, name):
        self._name, self._calls = name, 0

    async def complete(self, request):
        self._calls += 1
        full = self._calls == self.FULL
        usage = Usage(prompt=125_000 if full else 100 * self._calls, completion=10)
        if self._calls <= self.FULL:
            body = shell(self._name, f"seq {self._calls} 3000", self._calls).body
        elif self._calls == self.FULL + 1:
            body = text("<summary>so far so good</summary>").body
        else:
            body = text("done").body
        counts = {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion}
        return ModelReply(body={**body, "usage": counts}, usage=usage)


class Delegating(Upstream):
    """Has a sub-agent say hi, and waits for it where that takes a call of its own (Codex)."""

    model = "scripted"

    def __init__(self, name):
        self._name, self._spawned = name, False

    async def complete(self, request):
        messages = request.body["messages"]
        said = json.dumps([item["content"] for item in messages if item["role"] == "user"])
        if "say hi" in said:
            return ModelReply(body=text("hi").body)
        if not self._spawned:
            self._spawned = True
            return ModelReply(body=tool_call(*SPAWN[self._name]).body)
        if started := AGENT.search(str(messages[-1]["content"])):
            wait = {"targets": [started[1]], "timeout_ms": 60_000}
            return ModelReply(body=tool_call("multi_agent_v1__wait_agent", wait, id="w").body)
        return ModelReply(body=text("done").body)


class Watched(Local):
    """Tells the homes of the sandboxes that were opened."""

    def __init__(self, homes):
        super().__init__()
        self._homes = homes

    @asynccontextmanager
    async def open(self, spec):
        async with super().open(spec) as sandbox:
            self._homes.append(sandbox.home)
            yield sandbox


def _processes(program, home):
    """Running processes of an executable that have this HOME."""
    wanted, found = Path(program).resolve(), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            executable = Path(os.readlink(process / "exe"))
            environment = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if executable == wanted and f"HOME={home}".encode() in environment:
            found.append(int(process.name))
    return found
