"""ZeroClaw, unmodified: `zeroclaw agent -m` in the sandbox, its model calls through the gateway.

Tools come as an MCP bundle, or as a skill bundle of SKILL.md folders with curl. The preset `skill-toml`
gives the bundle SKILL.toml manifests instead, whose tools ZeroClaw offers as functions of their own,
`<skill>__<tool>`. Of the kinds of tools that a manifest may define, `http` is GET only, so these are of
kind `shell`. Its arguments are strings, all required, which replace `{{name}}` in the command as they
are, with no quoting; hence one argument that holds the JSON, between the lines of a here-document, where
neither the shell nor ZeroClaw's search for forbidden paths (since 0.8.0) looks into it.

Configuration as read from the source of 0.8.4 (schema version 3, docs/book of the repository;
crates/zeroclaw-runtime/src/tools/skill_tool.rs); nothing in its requests tells an agent's calls from a
sub-agent's, so all are `main`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from harness_wrappers._common import SERVER, ended, environment, toml
from rollout.gateway.tools import grouped
from rollout.harness import Finish, Harness, Job, Launch
from rollout.programs import Program
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import JsonObject, ToolSpec, ToolSurface

__all__ = ["ZeroClaw"]

AGENT, BUNDLE, PROFILE = "worker", "task", "open"

UNLIMITED = 100_000
"""Where 0 would mean none: iterations of the tool loop, actions per hour."""

ARGUMENT = "json_arguments"
"""The one argument of a SKILL.toml tool."""

NEVER = 86_400
"""Seconds: the episode's own limit ends it long before."""

CURL = (
    "curl -sS -X POST -H 'Content-Type: application/json' -w '\\n%{http_code}\\n' "
    f"URL --data-binary @- <<'JSON'\n{{{{{ARGUMENT}}}}}\nJSON"
)
"""What a SKILL.toml tool runs; it prints the tool's answer and status, as a SKILL.md's command does."""

INSTALL = (
    "a release of github.com/zeroclaw-labs/zeroclaw (archive zeroclaw-<architecture>-unknown-linux-musl) "
    "unpacked on PATH or named by --harness-program; no package registry has it"
)


class ZeroClaw(Harness):
    """`zeroclaw agent -m`, one config folder per episode."""

    dialect = "chat"
    surfaces: tuple[ToolSurface, ...] = ("mcp", "skill")
    program: ClassVar[Program | None] = Program(name="zeroclaw", install=INSTALL)
    presets: ClassVar[Mapping[str, JsonObject]] = {
        "default": {},
        "skill-toml": {"skills": "SKILL.toml"},
    }

    def __init__(self, program: str = "", preset: str = "default") -> None:
        super().__init__(program, preset)
        if self.options:
            self.surfaces = ("skill",)

    def launch(self, job: Job, sandbox: Sandbox) -> Launch:
        home = f"{sandbox.home}/.zeroclaw"
        files = {f"{home}/config.toml": toml(_settings(job, sandbox))}
        skills = f"{home}/shared/skills/{BUNDLE}"
        shown = _manifests(job) if self.options else job.skills
        files |= {f"{skills}/{path}": text for path, text in shown.items()}
        argv = (*self.command, "--config-dir", home, "agent", "-a", AGENT, "-m", job.prompt)
        return Launch(argv, environment(sandbox), files)

    def finish(self, result: ExecResult, collected: Mapping[str, bytes]) -> Finish:
        return ended("zeroclaw", result, answer=result.stdout.decode(errors="replace").strip())


def _settings(job: Job, sandbox: Sandbox) -> JsonObject:
    mcp = job.surface == "mcp" and job.tools
    agent = {
        "enabled": True,
        "model_provider": "custom.gateway",
        "risk_profile": PROFILE,
        "runtime_profile": PROFILE,
        "workspace": {"path": sandbox.workspace},
        "mcp_bundles": [BUNDLE] if mcp else [],
        "skill_bundles": [BUNDLE] if job.skills else [],
    }
    server = {"name": SERVER, "transport": "http", "url": job.endpoint.mcp_url}
    return {
        "schema_version": 3,
        "providers": {"models": {"custom": {"gateway": _provider(job)}}},
        "agents": {AGENT: agent},
        "risk_profiles": {PROFILE: _unrestricted()},
        "runtime_profiles": {
            PROFILE: {
                "agentic": True,
                "max_tool_iterations": UNLIMITED,
                "max_actions_per_hour": UNLIMITED,
            }
        },
        "skill_bundles": {BUNDLE: {}} if job.skills else {},
        "mcp_bundles": {BUNDLE: {"servers": [SERVER]}} if mcp else {},
        "mcp": {"servers": [server] if mcp else []},
        "reliability": {"provider_retries": 0},
    }


def _provider(job: Job) -> JsonObject:
    endpoint = job.endpoint
    return {
        "uri": endpoint.model_url,
        "model": endpoint.model,
        "api_key": endpoint.key,
        "timeout_secs": 1800,
        "max_tokens": endpoint.max_output,
        "native_tools": True,
    }


def _unrestricted() -> JsonObject:
    """The sandbox is the limit, not lists of commands (no curl by default) and paths (no /home, /tmp)."""
    return {
        "level": "full",
        "workspace_only": False,
        "allowed_commands": ["*"],
        "forbidden_paths": [],
        "block_high_risk_commands": False,
        "require_approval_for_medium_risk": False,
        "sandbox_enabled": False,
    }


def _manifests(job: Job) -> dict[str, str]:
    """`<skill>/SKILL.toml` -> text."""
    return {
        f"{name}/SKILL.toml": toml(_manifest(name, tools, job.endpoint.tools_url))
        for name, tools in grouped(job.tools).items()
    }


def _manifest(name: str, tools: Sequence[ToolSpec], url: str) -> JsonObject:
    described = ", ".join(tool.name for tool in tools)
    return {
        "skill": {"name": name, "description": f"The {name} tools: {described}"},
        "tools": [_shell_tool(tool, url) for tool in tools],
    }


def _shell_tool(tool: ToolSpec, url: str) -> JsonObject:
    schema = json.dumps({"type": "object", **tool.input_schema}, ensure_ascii=False)
    return {
        "name": tool.name,
        "description": tool.description,
        "kind": "shell",
        "command": CURL.replace("URL", f"{url}/{tool.name}"),
        "args": {ARGUMENT: f"The arguments as JSON text, an object of this schema: {schema}"},
        "timeout_secs": NEVER,
    }
