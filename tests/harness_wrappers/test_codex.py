"""The Codex harness: the real CLI through the real gateway, and how its endings are read."""

import asyncio
import json
import shutil
import tomllib
from pathlib import Path

import pytest
from support.desk import TASK, Scripted, attempt, call, say

from harness_wrappers.codex import Codex
from rollout.errors import HarnessError, UsageError
from rollout.gateway.upstream import Refused
from rollout.gateway.upstreams.reference import Reference
from rollout.harness import Endpoint, Job
from rollout.sandbox import ExecResult
from rollout.sandboxes.bubblewrap import Bubblewrap
from rollout.sandboxes.docker import Docker
from rollout.sandboxes.local import Local
from rollout.types import Outcome, Usage

ANSWER = "/h/.codex/last-message.txt"


@pytest.fixture(scope="module")
def codex():
    harness = Codex()
    try:
        asyncio.run(harness.prepare())
    except UsageError as error:
        pytest.skip(str(error))
    return harness


@pytest.fixture
async def sandboxes(request):
    provider = request.param()
    if why := await provider.check():
        pytest.skip(why)
    return provider


class Place:
    workspace = "/w"
    home = "/h"


def job(**fields):
    endpoint = Endpoint(
        url="http://127.0.0.1:1/e/x", key="k", model='a "b" 李', context_window=32_768
    )
    return Job(
        **{"prompt": "-p", "endpoint": endpoint, "surface": "mcp", "tools": TASK.tools, **fields}
    )


def ended(code, *events, stderr=b""):
    stdout = "\n".join(json.dumps(event) for event in events).encode()
    return ExecResult(exit_code=code, stdout=stdout, stderr=stderr)


@pytest.mark.parametrize(
    "sandboxes",
    [Local, Bubblewrap, pytest.param(Docker, marks=pytest.mark.docker)],
    indirect=True,
)
@pytest.mark.parametrize("surface", ["mcp", "skill"])
async def test_the_reference_policy_passes_with_the_real_program(codex, sandboxes, surface):
    if surface == "skill" and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    episode, trace = await attempt(codex, Reference(), surface, sandboxes)
    assert (episode.outcome, episode.reason) == (Outcome.PASSED, "")
    assert trace.answer == "Sent at 09:00 as 1: 好的"
    names = ["mail_list", "clock_now", "mail_send", "mail_send"]
    assert [item.name for item in trace.tool_calls] == names
    assert {item.surface for item in trace.tool_calls} == {surface}
    assert {(item.kind, item.dialect) for item in trace.calls} == {("main", "responses")}
    assert len({item.agent for item in trace.calls}) == 1
    assert trace.calls[0].agent
    assert episode.calls == (5 if surface == "mcp" else 7)


async def test_the_model_sees_codex_as_users_have_it(codex):
    upstream = Scripted([say("done")])
    _, trace = await attempt(codex, upstream, "mcp", Local())
    asked = upstream.requests[0].body
    tools = [tool["function"]["name"] for tool in asked["tools"]]
    assert {"exec_command", "mcp__tools__mail_list", "view_image"} <= set(tools)
    text = json.dumps(asked["messages"])
    assert "You are a coding agent running in the Codex CLI" in text
    assert "metadata" not in text
    assert "web_search" not in trace.calls[0].request.decode()


async def test_a_full_context_window_is_the_policys_end(codex):
    upstream = Scripted([Refused("too long", 400, "context_length_exceeded")])
    episode, _ = await attempt(codex, upstream, "mcp", Local())
    assert (episode.outcome, episode.cause) == (Outcome.FAILED, "policy")
    assert "context window" in episode.reason


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_a_reply_that_was_cut_is_the_policys_end(codex, finish):
    upstream = Scripted([say("half")], finish=finish)
    episode, trace = await attempt(codex, upstream, "mcp", Local())
    assert (episode.outcome, episode.cause, episode.exit_code) == (Outcome.FAILED, "policy", 1)
    assert "Incomplete response returned" in episode.reason
    assert trace.answer == "half"


async def test_compaction_is_told_apart(codex):
    full = Usage(prompt=120_000, completion=5)
    turns = [call(("exec_command", '{"cmd": "true"}')), say("summary"), say("done")]
    _, trace = await attempt(codex, Scripted(turns, usage=full), "mcp", Local())
    assert [item.kind for item in trace.calls] == ["main", "compaction", "main"]
    assert trace.answer == "done"


async def test_sub_agents_are_told_apart(codex):
    def spawn(request):
        return call(("multi_agent_v1__spawn_agent", '{"message": "be a child"}'))

    def go_on(request):
        last = request.body["messages"][-1]
        if "be a child" in str(last):
            return say("child")
        if "agent_id" in str(last):
            targets = [json.loads(last["content"])["agent_id"]]
            wait = json.dumps({"targets": targets, "timeout_ms": 60_000})
            return call(("multi_agent_v1__wait_agent", wait))
        return say("done")

    _, trace = await attempt(codex, Scripted([spawn, go_on, go_on, go_on]), "mcp", Local())
    agents = {item.agent: item.kind for item in trace.calls}
    assert sorted(agents.values()) == ["main", "subagent"]
    assert [item.kind for item in trace.calls].count("subagent") == 1
    assert trace.answer == "done"


async def test_a_refused_call_is_the_models_fault(codex):
    upstream = Scripted([Refused("no such model", 404, "model_not_found")])
    episode, _ = await attempt(codex, upstream, "mcp", Local())
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "model")


async def test_shell_commands_get_a_clean_environment(codex, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
    command = json.dumps({"cmd": "env"})
    upstream = Scripted([call(("exec_command", command)), say("done")])
    await attempt(codex, upstream, "mcp", Local())
    output = upstream.requests[1].body["messages"][-1]["content"]
    assert "CODEX_HOME=" in str(output)
    assert "SECRET_OF_THE_HOST" not in str(output)


def test_its_config_is_toml():
    launch = Codex("/x/codex").launch(job(), Place())
    config = launch.files["/h/.codex/config.toml"]
    settings = tomllib.loads(config)
    assert settings["model"] == 'a "b" 李'
    assert settings["mcp_servers"]["tools"]["url"] == "http://127.0.0.1:1/e/x/mcp"
    assert settings["model_providers"]["gateway"]["base_url"] == "http://127.0.0.1:1/e/x/v1"
    assert settings["model_auto_compact_token_limit"] == 32_768 - 8192
    assert launch.argv[-2:] == ("--", "-p")
    assert "k" not in config.split()
    assert launch.env["GATEWAY_KEY"] == "k"


async def test_the_pinned_codex_knows_every_setting(codex, tmp_path):
    (tmp_path / "config.toml").write_text(
        codex.launch(job(), Place()).files["/h/.codex/config.toml"]
    )
    process = await asyncio.create_subprocess_exec(
        *(codex.executable, "exec", "--strict-config", "--skip-git-repo-check", "x"),
        env={"CODEX_HOME": str(tmp_path), "HOME": str(tmp_path), "GATEWAY_KEY": "k"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    errors = (await process.communicate())[1].decode()
    assert (
        "required MCP servers failed" in errors
    )  # port 1: it came that far, so the config is fine


def test_skills_go_to_its_own_home_and_not_to_the_workspace():
    launch = Codex("/x/codex").launch(
        job(surface="skill", skills={"mail/SKILL.md": "text"}), Place()
    )
    assert launch.files["/h/.codex/skills/mail/SKILL.md"] == "text"
    assert "mcp_servers" not in launch.files["/h/.codex/config.toml"]


def test_the_answer_is_the_file_or_else_the_last_message():
    said = {"type": "item.completed", "item": {"type": "agent_message", "text": "from events"}}
    harness = Codex()
    assert harness.finish(ended(0, said), {ANSWER: b"from file\n"}).answer == "from file"
    assert harness.finish(ended(0, said, {"type": "x"}), {ANSWER: b""}).answer == "from events"
    assert harness.finish(ended(0), {ANSWER: b""}).answer == ""


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (
            ended(1, stderr=b"noise\nError: unknown field `x`\n"),
            "exit code 1: Error: unknown field",
        ),
        (ended(2), "exit code 2: no message"),
        (
            ended(1, {"type": "turn.failed", "error": {"message": "error sending request"}}),
            "error sending request",
        ),
        (ended(1, {"type": "error", "message": "unexpected status 401"}), "unexpected status 401"),
    ],
)
def test_a_failure_says_why(result, why):
    finish = Codex().finish(result, {ANSWER: b""})
    assert why in finish.failed
    assert finish.exit_code == result.exit_code


def test_a_program_that_was_killed_is_a_crash():
    with pytest.raises(HarnessError, match="codex was ended by signal 9"):
        Codex().finish(ended(-9), {ANSWER: b""})


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({}, "main"),
        ({"x-codex-turn-metadata": '{"request_kind": "turn"}'}, "main"),
        ({"x-openai-subagent": "collab_spawn"}, "subagent"),
        ({"x-codex-turn-metadata": '{"request_kind": "compaction"}'}, "compaction"),
        ({"x-codex-turn-metadata": "{"}, "main"),
        ({"x-codex-turn-metadata": "[]"}, "main"),
    ],
)
def test_calls_are_classified_by_their_headers(headers, kind):
    assert Codex.classify({"thread-id": "t1", **headers}, {}) == (kind, "t1")


async def test_npms_launcher_is_seen_through(tmp_path):
    package = tmp_path / "node_modules/@openai"
    launcher = package / "codex/bin/codex.js"
    native = package / "codex-linux-x64/vendor/x/bin/codex"
    for path in (launcher, native):
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\necho codex-cli 1.2.3\n")
        path.chmod(0o755)
    link = tmp_path / "codex"
    link.symlink_to(launcher)
    harness = Codex(str(link))
    await harness.prepare()
    assert (harness.executable, harness.version) == (str(native), "1.2.3")
    assert harness.program_folders == (native.parent,)
    (native.parent.parent / "codex-package.json").write_text("{}")
    assert harness.program_folders == (native.parent.parent,)


def test_nothing_to_show_before_the_program_is_found():
    assert Codex().program_folders == ()
    assert Codex("/nowhere/codex").program_folders == (Path("/nowhere"),)
