"""The ReAct loop, through the real gateway, on every tool surface."""

import json
import shutil

import pytest
from support.desk import TASK, Scripted, attempt, call, say

from harness_wrappers.react import ALONE, OUTPUT_LIMIT, PROMPT, React
from rollout.gateway.upstream import Refused
from rollout.gateway.upstreams.reference import Reference
from rollout.sandboxes.local import Local
from rollout.types import Outcome, Task

needs_curl = pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")


@pytest.mark.parametrize("surface", ["native", "mcp", pytest.param("skill", marks=needs_curl)])
async def test_the_reference_policy_passes_on_every_surface(surface):
    episode, trace = await attempt(React(), Reference(), surface, Local())
    assert (episode.outcome, episode.reason) == (Outcome.PASSED, "")
    assert trace.answer == "Sent at 09:00 as 1: 好的"
    names = ["mail_list", "clock_now", "mail_send", "mail_send"]
    assert [item.name for item in trace.tool_calls] == names
    assert {item.surface for item in trace.tool_calls} == {surface}
    assert {item.kind for item in trace.calls} == {"main"}


async def test_the_prompt_is_as_documented():
    upstream = Scripted([call(("clock_now", "{}")), say("done")])
    await attempt(React(), upstream, "native", Local())
    first, second = (request.body for request in upstream.requests)
    assert first["messages"] == [
        {"role": "system", "content": PROMPT + ALONE},
        {"role": "user", "content": TASK.prompt},
    ]
    assert first["tools"][1]["function"] == {
        "name": "mail_send",
        "description": "Send a mail.",
        "parameters": TASK.tools[1].input_schema,
    }
    assert [message["role"] for message in second["messages"][2:]] == ["assistant", "tool"]
    assert second["messages"][3]["content"] == '{"now":"09:00"}'


async def test_reasoning_is_sent_back_as_it_came():
    thought = call(("clock_now", "{}")) | {"reasoning_content": "What time is it?"}
    upstream = Scripted([thought, say("done")])
    await attempt(React(), upstream, "native", Local())
    sent = upstream.requests[1].body["messages"][2]
    assert sent["reasoning_content"] == "What time is it?"
    assert "content" not in sent


@pytest.mark.parametrize("surface", ["native", "mcp"])
async def test_bad_calls_are_answered_and_good_ones_of_the_turn_still_run(surface):
    bad = call(("mail_send", '{"to": '), ("mail_send", "[1]"), ("nothing", "{}"), ("clock_now", ""))
    upstream = Scripted([bad, say("done")])
    episode, trace = await attempt(React(), upstream, surface, Local())
    assert episode.outcome is Outcome.FAILED
    replies = upstream.requests[1].body["messages"][3:]
    assert [reply["tool_call_id"] for reply in replies] == [f"call_{n}" for n in range(4)]
    texts = [reply["content"] for reply in replies]
    assert "not valid JSON" in texts[0]
    assert "must be a JSON object" in texts[1]
    assert json.loads(texts[2]) == {"error": "no tool named 'nothing'"}
    assert json.loads(texts[3]) == {"now": "09:00"}
    assert sorted(item.name for item in trace.tool_calls) == ["clock_now", "nothing"]


async def test_skills_are_listed_and_commands_run_in_the_workspace():
    commands = ("pwd; echo out; echo err >&2; exit 3", "printf 'é%.0s' $(seq 50000)", "cat x.txt")
    calls = [("bash", json.dumps({"command": command})) for command in commands]
    upstream = Scripted([call(*calls, ("bash", "{}"), ("mail_list", "{}")), say("done")])
    await attempt(React(), upstream, "skill", Local())
    first, second = (request.body for request in upstream.requests)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["bash"]
    system = first["messages"][0]["content"]
    assert "- mail: How to call the mail tools with curl: mail_list, mail_send (file: /" in system
    assert system.count("SKILL.md)") == 2
    texts = [message["content"] for message in second["messages"][3:]]
    assert texts[0].endswith("/workspace\nout\nerr\n\n(exit code 3)")
    assert f"[{50_000 - OUTPUT_LIMIT} characters left out]" in texts[1]
    assert "No such file" in texts[2]
    assert texts[3] == texts[4] == "Error: the only tool is bash, and it needs a command"


async def test_the_turn_limit_ends_the_attempt():
    task = Task(id="t", prompt="p", tools=TASK.tools, max_turns=2)
    upstream = Scripted([call(("clock_now", "{}"))] * 2)
    episode, trace = await attempt(React(), upstream, "native", Local(), task)
    assert (episode.outcome, episode.cause) == (Outcome.FAILED, "policy")
    assert len(trace.calls) == 2


@pytest.mark.parametrize("surface", ["native", "mcp"])
async def test_a_full_context_window_is_the_policys_end(surface):
    upstream = Scripted([Refused("too long", 400, "context_length_exceeded")])
    episode, _ = await attempt(React(), upstream, surface, Local())
    assert (episode.outcome, episode.cause) == (Outcome.FAILED, "policy")
    assert "context window" in episode.reason


@pytest.mark.parametrize("surface", ["native", "mcp"])
async def test_a_refused_call_is_the_models_fault(surface):
    upstream = Scripted([Refused("no such model", 404, "model_not_found")])
    episode, _ = await attempt(React(), upstream, surface, Local())
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "model")
    assert "no such model" in episode.reason


@pytest.mark.parametrize("surface", ["native", "mcp", "skill"])
async def test_what_goes_wrong_is_told_as_it_is(surface):
    upstream = Scripted([{"tool_calls": [{"id": "c"}]}])
    episode, _ = await attempt(React(), upstream, surface, Local())
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "harness")
    assert episode.reason.startswith("running the harness: KeyError: 'function' (")


async def test_a_reply_cut_at_the_limit_is_an_answer_and_says_so():
    upstream = Scripted([say("I was about to")], finish="length")
    episode, trace = await attempt(React(), upstream, "native", Local())
    assert trace.answer == "I was about to"
    assert (episode.cause, "length" in episode.reason) == ("policy", True)
