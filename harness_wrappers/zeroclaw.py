"""ZeroClaw, unmodified: `zeroclaw agent -m` in the sandbox, its model calls through the gateway.

Tools come as an MCP bundle, or as a skill bundle of SKILL.md folders with curl. Its SKILL.toml tools are
not used: those over HTTP are GET with string arguments only, and releases differ in how those over the
shell quote an argument, so a tool's JSON arguments would not arrive as the model wrote them.

Configuration as read from the source of 0.8.4 (schema version 3, docs/book of the repository); nothing in
its requests tells an agent's calls from a sub-agent's, so all are `main`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness_wrappers._common import SERVER, ended, environment, toml
from rollout.harness import Finish, Harness, Job, Launch
from rollout.programs import Program
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import JsonObject

__all__ = ["ZeroClaw"]

AGENT, BUNDLE, PROFILE = "worker", "task", "open"

UNLIMITED = 100_000
"""Where 0 would mean none: iterations of the tool loop, actions per hour."""

INSTALL = (
    "a release of github.com/zeroclaw-labs/zeroclaw (archive zeroclaw-<architecture>-unknown-linux-musl) "
    "unpacked on PATH or named by --harness-program; no package registry has it"
)


class ZeroClaw(Harness):
    """`zeroclaw agent -m`, one config folder per episode."""

    dialect = "chat"
    surfaces = ("mcp", "skill")
    program: ClassVar[Program | None] = Program(name="zeroclaw", install=INSTALL)

    def launch(self, job: Job, sandbox: Sandbox) -> Launch:
        home = f"{sandbox.home}/.zeroclaw"
        files = {f"{home}/config.toml": toml(_settings(job, sandbox))}
        skills = f"{home}/shared/skills/{BUNDLE}"
        files |= {f"{skills}/{path}": text for path, text in job.skills.items()}
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
    """The sandbox is the limit, not a list of commands (which has no curl by default)."""
    return {
        "level": "full",
        "workspace_only": False,
        "allowed_commands": ["*"],
        "block_high_risk_commands": False,
        "require_approval_for_medium_risk": False,
        "sandbox_enabled": False,
    }
