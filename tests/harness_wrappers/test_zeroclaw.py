"""The ZeroClaw harness: its config held against the schema, and the real program where there is one.

The schema facts were read from ZeroClaw's source (0.8.4, schema version 3).
"""

import json
import re
import shlex
import sys
import tomllib

import pytest
from support import zeroclaw_stand_in
from support.desk import TASK, Scripted, attempt, call, say

from harness_wrappers._common import toml
from harness_wrappers.zeroclaw import ZeroClaw
from rollout.errors import HarnessError, UsageError
from rollout.gateway.tools import skills
from rollout.gateway.upstreams.reference import Reference
from rollout.harness import Endpoint, Job
from rollout.sandbox import ExecResult
from rollout.sandboxes.bubblewrap import Bubblewrap
from rollout.sandboxes.local import Local
from rollout.types import Outcome

STRINGS = [str]
SCHEMA = {
    "schema_version": int,
    "providers.models.*.*": {
        "uri": str,
        "model": str,
        "api_key": str,
        "timeout_secs": int,
        "max_tokens": int,
        "native_tools": bool,
        "extra_headers": dict,
        "wire_api": str,
    },
    "agents.*": {
        "enabled": bool,
        "model_provider": str,
        "risk_profile": str,
        "runtime_profile": str,
        "skill_bundles": STRINGS,
        "mcp_bundles": STRINGS,
        "workspace": dict,
    },
    "agents.*.workspace": {"path": str},
    "risk_profiles.*": {
        "level": str,
        "workspace_only": bool,
        "allowed_commands": STRINGS,
        "forbidden_paths": STRINGS,
        "block_high_risk_commands": bool,
        "require_approval_for_medium_risk": bool,
        "shell_env_passthrough": STRINGS,
        "sandbox_enabled": bool,
    },
    "runtime_profiles.*": {
        "agentic": bool,
        "max_tool_iterations": int,
        "max_actions_per_hour": int,
    },
    "skill_bundles.*": {},
    "mcp_bundles.*": {"servers": STRINGS},
    "mcp": {"servers": [dict]},
    "reliability": {"provider_retries": int},
}
"""Tables (with `*` for a name of one's own) and their keys, as far as they are used here."""


class Place:
    workspace = "/w"
    home = "/h"


def launched(surface, preset="default"):
    endpoint = Endpoint(url="http://127.0.0.1:1/e/x", key="k", model='a "b" 李', max_output=4096)
    shown = skills(TASK.tools, endpoint.tools_url) if surface == "skill" else {}
    job = Job(prompt="-p", endpoint=endpoint, surface=surface, tools=TASK.tools, skills=shown)
    launch = ZeroClaw("/x/zeroclaw", preset).launch(job, Place())
    return launch, tomllib.loads(launch.files["/h/.zeroclaw/config.toml"])


def tables(config, pattern):
    """The tables at a path of the schema."""
    found = [config]
    for step in pattern.split("."):
        found = [
            item
            for table in found
            for key, item in table.items()
            if step in ("*", key) and isinstance(item, dict)
        ]
    return found


def fits(value, kind):
    if isinstance(kind, list):
        return isinstance(value, list) and all(isinstance(item, kind[0]) for item in value)
    return type(value) is kind


def check(config):
    """Known tables, known keys, right types, and names that lead somewhere."""
    assert set(config) <= {pattern.partition(".")[0] for pattern in SCHEMA}
    assert config["schema_version"] == 3
    for pattern, keys in SCHEMA.items():
        if pattern != "schema_version":
            for table in tables(config, pattern):
                assert {key for key, value in table.items() if not fits(value, keys[key])} == set()
    servers = {server["name"]: server for server in config["mcp"]["servers"]}
    for server in servers.values():
        assert server["transport"] in ("stdio", "http", "sse")
        assert server["transport"] == "stdio" or server["url"].startswith("http")
    for bundle in config["mcp_bundles"].values():
        assert set(bundle["servers"]) <= set(servers)
    for agent in config["agents"].values():
        kind, alias = agent["model_provider"].split(".")
        assert alias in config["providers"]["models"][kind]
        assert agent["risk_profile"] in config["risk_profiles"]
        assert agent["runtime_profile"] in config["runtime_profiles"]
        assert set(agent["mcp_bundles"]) <= set(config["mcp_bundles"])
        assert set(agent["skill_bundles"]) <= set(config["skill_bundles"])


@pytest.mark.parametrize("surface", ["mcp", "skill"])
def test_its_config_fits_the_schema(surface):
    launch, config = launched(surface)
    check(config)
    at = launch.argv.index("-a")
    assert launch.argv == (
        *("/x/zeroclaw", "--config-dir", "/h/.zeroclaw", "agent"),
        *("-a", launch.argv[at + 1], "-m", "-p"),
    )
    (agent,) = [config["agents"][launch.argv[at + 1]]]
    provider = config["providers"]["models"]["custom"]["gateway"]
    assert (provider["uri"], provider["model"]) == ("http://127.0.0.1:1/e/x/v1", 'a "b" 李')
    assert (provider["max_tokens"], config["reliability"]) == (4096, {"provider_retries": 0})
    assert agent["workspace"] == {"path": "/w"}
    (profile,) = config["runtime_profiles"].values()
    assert profile["max_actions_per_hour"] > 0, "0 would mean none"


def test_mcp_tools_are_bundled_for_the_agent():
    _, config = launched("mcp")
    (agent,) = config["agents"].values()
    (server,) = config["mcp"]["servers"]
    assert server["url"] == "http://127.0.0.1:1/e/x/mcp"
    assert [config["mcp_bundles"][name] for name in agent["mcp_bundles"]] == [
        {"servers": [server["name"]]}
    ]
    assert agent["skill_bundles"] == []


def test_skills_are_where_the_bundle_is_looked_for():
    launch, config = launched("skill")
    (agent,) = config["agents"].values()
    (bundle,) = agent["skill_bundles"]
    (risk,) = config["risk_profiles"].values()
    assert f"/h/.zeroclaw/shared/skills/{bundle}/mail/SKILL.md" in launch.files
    assert (risk["allowed_commands"], risk["block_high_risk_commands"]) == (["*"], False)
    assert (agent["mcp_bundles"], config["mcp"]["servers"]) == ([], [])


MANIFEST = {"skill", "tools"}
SKILL = {"name": str, "description": str}
SKILL_TOOL = {
    "name": str,
    "description": str,
    "kind": str,
    "command": str,
    "args": dict,
    "timeout_secs": int,
}


def check_manifest(manifest):
    """Known keys, right types, arguments that the command has a place for, and no path to forbid."""
    assert set(manifest) == MANIFEST
    assert {key for key, value in manifest["skill"].items() if not fits(value, SKILL[key])} == set()
    for tool in manifest["tools"]:
        assert {key for key, item in tool.items() if not fits(item, SKILL_TOOL[key])} == set()
        assert re.fullmatch(r"[\w-]{1,64}", f"{manifest['skill']['name']}__{tool['name']}", re.A)
        assert all(isinstance(described, str) for described in tool["args"].values())
        places = re.findall(r"{{(\w+)}}", tool["command"])
        assert (tool["kind"], sorted(places)) == ("shell", sorted(tool["args"]))
        first, _, document = tool["command"].partition("\n")
        assert document == "{{json_arguments}}\nJSON"
        assert first.endswith("<<'JSON'")
        with_slash = [word for word in shlex.split(first) if "/" in word and "://" not in word]
        assert with_slash == ["Content-Type: application/json"]


def test_tools_of_a_skill_toml_are_functions_that_take_json():
    launch, config = launched("skill", "skill-toml")
    check(config)
    (bundle,) = config["skill_bundles"]
    where = f"/h/.zeroclaw/shared/skills/{bundle}"
    skills = {path: text for path, text in launch.files.items() if "/skills/" in path}
    assert set(skills) == {f"{where}/mail/SKILL.toml", f"{where}/clock/SKILL.toml"}
    manifests = [tomllib.loads(text) for text in skills.values()]
    for manifest in manifests:
        check_manifest(manifest)
    _, send = manifests[0]["tools"]
    assert "http://127.0.0.1:1/e/x/tools/mail_send " in send["command"]
    assert '"required": ["to", "body"]' in send["args"]["json_arguments"]


def test_a_description_may_hold_any_character():
    text = 'a "b" \\ \x7f \x01 李\n'
    assert (
        tomllib.loads(toml({"tools": [{"description": text}]}))["tools"][0]["description"] == text
    )


def test_skill_toml_is_for_the_skill_surface():
    assert ZeroClaw(preset="skill-toml").surfaces == ("skill",)
    assert ZeroClaw().surfaces == ("mcp", "skill")


@pytest.fixture
def stand_in(tmp_path):
    """A program that treats the manifests as ZeroClaw does."""
    program = tmp_path / "zeroclaw"
    command = shlex.join([sys.executable, "-I", zeroclaw_stand_in.__file__])
    program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    program.chmod(0o755)
    return str(program)


async def test_json_arrives_as_the_model_wrote_it(stand_in):
    harness = ZeroClaw(stand_in, "skill-toml")
    episode, trace = await attempt(harness, Reference(), "skill", Local())
    assert (episode.outcome, episode.reason) == (Outcome.PASSED, "")
    assert [call.status for call in trace.tool_calls] == [200, 200, 429, 200]


@pytest.mark.parametrize("text", ['{"to": 1', "", {"to": "x"}])
async def test_what_is_no_json_text_is_told_to_the_model(stand_in, text):
    model = Scripted([call(("mail__mail_send", json.dumps({"json_arguments": text}))), say("no")])
    _, trace = await attempt(ZeroClaw(stand_in, "skill-toml"), model, "skill", Local())
    told = model.requests[-1].body["messages"][-1]["content"]
    assert "the body is not valid JSON" in told
    assert told.endswith("\n400\n")
    assert trace.tool_calls == ()


@pytest.mark.parametrize("damage", ["agents.worker.risk_profile", "agents.worker.mcp_bundles"])
def test_the_checker_sees_names_that_lead_nowhere(damage):
    _, config = launched("mcp")
    *path, key = damage.split(".")
    table = config
    for step in path:
        table = table[step]
    table[key] = ["nowhere"] if isinstance(table[key], list) else "nowhere"
    with pytest.raises(AssertionError):
        check(config)


def test_the_answer_is_what_it_prints():
    finish = ZeroClaw().finish(ExecResult(0, "\n好的\n".encode(), b"noise"), {})
    assert (finish.answer, finish.failed) == ("好的", "")
    finish = ZeroClaw().finish(ExecResult(1, b"", b"noise\nError: no such agent\n"), {})
    assert finish.failed == "zeroclaw ended with exit code 1: Error: no such agent"
    with pytest.raises(HarnessError, match="signal 9"):
        ZeroClaw().finish(ExecResult(-9, b"", b""), {})


async def test_a_missing_program_comes_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match=re.escape("github.com/zeroclaw-labs/zeroclaw")):
        await ZeroClaw().prepare()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("surface", "preset"), [("mcp", "default"), ("skill", "default"), ("skill", "skill-toml")]
)
async def test_the_reference_policy_passes_with_the_real_program(surface, preset):
    harness, sandboxes = ZeroClaw(preset=preset), Bubblewrap()
    try:
        await harness.prepare()
    except UsageError as error:
        pytest.skip(str(error))
    if why := await sandboxes.check():
        pytest.skip(why)
    episode, _ = await attempt(harness, Reference(), surface, sandboxes)
    assert (episode.outcome, episode.reason) == (Outcome.PASSED, "")
