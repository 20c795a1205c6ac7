"""The Claude Code harness: the real program in a sandbox, its settings, and how its endings are read."""

import json
import os

import pytest
from support.desk import TASK, Scripted, attempt, say

from harness_wrappers.claude_code import ClaudeCode
from rollout.errors import HarnessError, UsageError
from rollout.gateway.upstreams.reference import Reference
from rollout.harness import Endpoint, Job
from rollout.sandbox import ExecResult
from rollout.sandboxes.bubblewrap import Bubblewrap
from rollout.sandboxes.local import Local
from rollout.types import Outcome


async def installed(preset="default"):
    harness = ClaudeCode(preset=preset)
    try:
        await harness.prepare()
    except UsageError as error:
        pytest.skip(str(error))
    return harness


class Place:
    workspace = "/w"
    home = "/h"


def launched(preset="default", *, window=131_072, output=8192, **fields):
    endpoint = Endpoint(
        url="http://127.0.0.1:1/e/x",
        key="k",
        model="org/model",
        context_window=window,
        max_output=output,
    )
    job = {"prompt": "-p", "endpoint": endpoint, "surface": "mcp", "tools": TASK.tools}
    return ClaudeCode("/x/claude", preset).launch(Job(**(job | fields)), Place())


def ended(code, said=None, stderr=b""):
    stdout = b"" if said is None else json.dumps(said).encode()
    return ClaudeCode().finish(ExecResult(exit_code=code, stdout=stdout, stderr=stderr), {})


@pytest.mark.parametrize("surface", ["mcp", "skill"])
async def test_the_reference_policy_passes_in_a_sandbox(surface):
    harness, sandboxes = await installed(), Bubblewrap()
    if why := await sandboxes.check():
        pytest.skip(why)
    episode, trace = await attempt(harness, Reference(), surface, sandboxes)
    assert (episode.outcome, episode.reason) == (Outcome.PASSED, "")
    assert trace.answer == "Sent at 09:00 as 1: 好的"
    names = ["mail_list", "clock_now", "mail_send", "mail_send"]
    assert [item.name for item in trace.tool_calls] == names
    assert {(item.kind, item.dialect) for item in trace.calls} == {("main", "messages")}
    assert len({item.agent for item in trace.calls}) == 1


async def test_the_model_sees_claude_code_as_users_have_it():
    harness, upstream = await installed(), Scripted([say("done")])
    _, trace = await attempt(harness, upstream, "mcp", Local())
    asked = upstream.requests[0].body
    tools = {tool["function"]["name"] for tool in asked["tools"]}
    assert {"Agent", "Bash", "Skill", "WebFetch", "mcp__tools__mail_list"} <= tools
    text = json.dumps(asked["messages"])
    assert "x-anthropic-billing-header" in trace.calls[0].request.decode()
    assert "billing" not in text
    assert TASK.prompt in text


async def test_the_slim_preset_has_the_tools_for_files_and_commands():
    harness, upstream = await installed("slim"), Scripted([say("done")])
    await attempt(harness, upstream, "skill", Local())
    tools = {tool["function"]["name"] for tool in upstream.requests[0].body["tools"]}
    assert tools == {"Bash", "Read", "Edit", "Write", "Skill"}
    text = json.dumps(upstream.requests[0].body["messages"])
    assert "- mail: How to call the mail tools" in text
    assert "deep-research" not in text


def test_its_command_and_environment(monkeypatch):
    monkeypatch.setitem(os.environ, "ANTHROPIC_API_KEY", "of the host")
    launch = launched()
    assert launch.argv[:2] == ("/x/claude", "-p")
    assert launch.argv[-2:] == ("--", "-p")
    assert launch.env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1/e/x"
    assert (launch.env["ANTHROPIC_AUTH_TOKEN"], launch.env["ANTHROPIC_MODEL"]) == ("k", "org/model")
    assert "ANTHROPIC_API_KEY" not in launch.env
    servers = json.loads(launch.files["/h/.claude/mcp.json"])["mcpServers"]
    assert servers["tools"]["url"] == "http://127.0.0.1:1/e/x/mcp"


def test_skills_go_to_its_own_folder_and_not_to_the_workspace():
    launch = launched(surface="skill", skills={"mail/SKILL.md": "text"})
    assert launch.files["/h/.claude/skills/mail/SKILL.md"] == "text"
    assert json.loads(launch.files["/h/.claude/mcp.json"]) == {"mcpServers": {}}


@pytest.mark.parametrize(
    ("window", "compact_at"), [(131_072, None), (65_536, 65_536 - 8192 - 13_000), (32_768, 16_384)]
)
def test_it_compacts_before_the_window_is_full(window, compact_at):
    env = launched(window=window).env
    assert env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == str(window)
    percent = env.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")
    if compact_at is None:
        assert percent is None
    else:
        # Of the smallest window that it knows, less one reply.
        assert float(percent) / 100 * (100_000 - 8192) == pytest.approx(compact_at, abs=10)


def test_a_conversation_goes_on_in_the_same_session():
    endpoint = Endpoint(url="http://x", key="k", model="m")
    job = Job(prompt="p", endpoint=endpoint, surface="mcp")
    launch = ClaudeCode("/x/claude").launch_again(job, "text", Place())
    assert launch.argv[-3:] == ("--continue", "--", "text")
    assert launch.files == {}


def test_is_error_counts_and_not_the_subtype():
    said = {"type": "result", "subtype": "success", "is_error": True, "result": "API Error: 500"}
    finish = ended(1, said)
    assert finish.failed == "claude ended with exit code 1: API Error: 500"
    assert finish.answer == ""


def test_the_answer_is_the_result():
    finish = ended(0, {"type": "result", "is_error": False, "result": "好的"})
    assert (finish.answer, finish.failed) == ("好的", "")
    assert ended(0, {"result": None}).answer == ""


def test_other_failures_say_what_they_printed():
    assert ended(1, stderr=b"noise\nunknown option\n").failed.endswith("1: unknown option")
    with pytest.raises(HarnessError, match="signal 9"):
        ended(-9)
