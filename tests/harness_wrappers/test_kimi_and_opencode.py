"""Kimi Code and OpenCode: their configs and how their endings are read; test_matrix.py runs them."""

import json
import tomllib

import pytest
from support.desk import TASK

from harness_wrappers.kimi_code import KimiCode
from harness_wrappers.opencode import OpenCode
from rollout.errors import HarnessError
from rollout.harness import Endpoint, Job
from rollout.sandbox import ExecResult

ENDPOINT = Endpoint(url="http://127.0.0.1:1/e/x", key="k", model='a "b" 李', max_output=4096)


class Place:
    workspace = "/w"
    home = "/h"


def job(surface="mcp", **fields):
    return Job(prompt="-p", endpoint=ENDPOINT, surface=surface, tools=TASK.tools, **fields)


def ended(harness, code, *events, stderr=b""):
    stdout = "\n".join(json.dumps(event) for event in events).encode()
    return harness.finish(ExecResult(exit_code=code, stdout=stdout, stderr=stderr), {})


def test_kimi_reads_toml():
    launch = KimiCode("/x/kimi").launch(job(), Place())
    config = tomllib.loads(launch.files["/h/.kimi-code/config.toml"])
    assert config["models"]["gateway"] == {
        "provider": "gateway",
        "model": 'a "b" 李',
        "max_context_size": 131_072,
        "max_output_size": 4096,
    }
    assert config["providers"]["gateway"]["base_url"] == "http://127.0.0.1:1/e/x/v1"
    servers = json.loads(launch.files["/h/.kimi-code/mcp.json"])["mcpServers"]
    assert servers == {"tools": {"url": "http://127.0.0.1:1/e/x/mcp"}}
    assert launch.argv == ("/x/kimi", "--output-format", "stream-json", "-p", "-p")


def test_opencode_reads_json_and_takes_the_prompt_from_stdin():
    launch = OpenCode("/x/opencode").launch(job(), Place())
    config = json.loads(launch.files["/h/.config/opencode/opencode.json"])
    provider = config["provider"]["gateway"]
    assert provider["options"]["baseURL"] == "http://127.0.0.1:1/e/x/v1"
    assert provider["models"]['a "b" 李']["limit"] == {"context": 131_072, "output": 4096}
    assert config["mcp"]["tools"]["url"] == "http://127.0.0.1:1/e/x/mcp"
    assert launch.files[launch.argv[3]] == "-p"
    assert "-p" not in launch.argv
    assert launch.env["GATEWAY_KEY"] == "k"


@pytest.mark.parametrize(
    ("harness", "folder"), [(KimiCode, "/h/.kimi-code"), (OpenCode, "/h/.config/opencode")]
)
def test_skills_go_to_their_own_folder(harness, folder):
    told = job("skill", skills={"mail/SKILL.md": "text"})
    launch = harness("/x/program").launch(told, Place())
    assert launch.files[f"{folder}/skills/mail/SKILL.md"] == "text"
    assert ENDPOINT.mcp_url not in "".join(launch.files.values())


def test_the_answer_is_the_last_thing_said():
    said = [{"role": "assistant", "content": "one"}, {"role": "tool"}]
    assert ended(KimiCode(), 0, *said, {"role": "assistant", "content": "好的"}).answer == "好的"
    said = [{"type": "text", "part": {"text": "one"}}, {"type": "step_finish"}]
    last = {"type": "text", "part": {"text": "好的"}}
    assert ended(OpenCode(), 0, *said, last).answer == "好的"
    assert ended(KimiCode(), 0).answer == ended(OpenCode(), 0).answer == ""


def test_failures_are_told():
    finish = ended(KimiCode(), 1, stderr=b"error: no provider\n")
    assert finish.failed == "kimi ended with exit code 1: error: no provider"
    error = {"type": "error", "error": {"name": "UnknownError", "data": {"message": "no model"}}}
    assert "no model" in ended(OpenCode(), 1, error).failed
    for harness in (KimiCode(), OpenCode()):
        with pytest.raises(HarnessError, match="signal 9"):
            ended(harness, -9)
