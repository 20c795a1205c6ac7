"""Anthropic's Claude Code, unmodified: `claude -p` in the sandbox, its model calls through the gateway.

Claude Code keeps its own prompt, tools, sub-agents, skills and compaction. What is switched off would
need Anthropic's servers (telemetry, updates, betas), ask a person (permissions) or retry what the
gateway has retried already. Environment variables: code.claude.com/docs/en/env-vars; flags:
code.claude.com/docs/en/cli-reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from harness_wrappers._common import SERVER, as_json, ended, environment, events
from rollout.harness import Finish, Harness, Job, Launch
from rollout.programs import Program
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import CallKind, JsonObject

__all__ = ["ClaudeCode"]

SETTINGS = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "API_TIMEOUT_MS": "1800000",
    "CLAUDE_STREAM_IDLE_TIMEOUT_MS": "1800000",
    "MCP_CONNECT_TIMEOUT_MS": "120000",
    "MCP_TIMEOUT": "120000",
    "MCP_TOOL_TIMEOUT": "600000",
    # It runs in a sandbox: without this it does not skip permissions as root, as in containers.
    "IS_SANDBOX": "1",
}

MODELS = ("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL")
"""All of its roles are played by the one model."""

SUMMARY = "Your task is to create a detailed summary of the conversation so far"
"""In the last message of every compaction."""

SMALLEST_WINDOW = 100_000
"""Tokens; Claude Code takes a smaller context window for this one."""

MARGIN = 13_000
"""Tokens below the window, less one reply, at which it compacts by itself."""


class ClaudeCode(Harness):
    """`claude -p --output-format json`, one CLAUDE_CONFIG_DIR per episode."""

    dialect = "messages"
    surfaces = ("mcp", "skill")
    converses = True
    program: ClassVar[Program | None] = Program(
        name="claude",
        candidates=("programs/claude_code/node_modules/@anthropic-ai/claude-code-*/claude",),
        install="make harnesses, or npm install -g @anthropic-ai/claude-code",
        package="@anthropic-ai/claude-code",
    )
    presets: ClassVar[Mapping[str, JsonObject]] = {
        "default": {},
        "solo": {"arguments": ("--disallowedTools", "Agent,Workflow")},
        "slim": {
            "arguments": ("--tools", "Bash,Read,Edit,Write,Skill"),
            "environment": {"CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1"},
        },
    }

    def launch(self, job: Job, sandbox: Sandbox) -> Launch:
        home = f"{sandbox.home}/.claude"
        files = {f"{home}/mcp.json": as_json(_servers(job))}
        files |= {f"{home}/skills/{path}": text for path, text in job.skills.items()}
        return self._launch(job, sandbox, (), job.prompt, files)

    def launch_again(self, job: Job, text: str, sandbox: Sandbox) -> Launch:
        return self._launch(job, sandbox, ("--continue",), text, {})

    def _launch(
        self,
        job: Job,
        sandbox: Sandbox,
        more: tuple[str, ...],
        text: str,
        files: Mapping[str, str],
    ) -> Launch:
        home = f"{sandbox.home}/.claude"
        argv = (
            *(*self.command, "-p", "--output-format", "json", "--dangerously-skip-permissions"),
            *("--mcp-config", f"{home}/mcp.json", "--strict-mcp-config"),
            *(*self.options.get("arguments", ()), *more, "--", text),
        )
        settings = {**SETTINGS, **self.options.get("environment", {}), **_model(job)}
        return Launch(argv, environment(sandbox, CLAUDE_CONFIG_DIR=home, **settings), files)

    def finish(self, result: ExecResult, collected: Mapping[str, bytes]) -> Finish:
        last = next(reversed(list(events(result.stdout))), {})
        said = str(last.get("result") or "")
        # `subtype` says "success" even where the model server could not be reached.
        failure = said if last.get("is_error") else ""
        return ended("claude", result, answer="" if failure else said, failure=failure)

    @classmethod
    def classify(cls, headers: Mapping[str, str], body: JsonObject) -> tuple[CallKind, str]:
        agent = headers.get("x-claude-code-agent-id", "")
        if SUMMARY in _last_text(body):
            return "compaction", agent or headers.get("x-claude-code-session-id", "")
        if agent:
            return "subagent", agent
        # Titles, the check of the quota, what WebFetch makes of a page.
        kind: CallKind = "main" if body.get("tools") else "side"
        return kind, headers.get("x-claude-code-session-id", "")

    def fingerprint(self) -> JsonObject:
        return super().fingerprint() | {"settings": SETTINGS}


def _model(job: Job) -> dict[str, str]:
    """The environment that says whom to ask, and how much fits."""
    endpoint = job.endpoint
    window, reply = endpoint.context_window, endpoint.max_output
    fits = {
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(reply),
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(window),
    }
    if window < SMALLEST_WINDOW:
        compact_at = max(window // 2, window - reply - MARGIN)
        percent = 100 * compact_at / (SMALLEST_WINDOW - min(reply, 20_000))
        fits["CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"] = f"{percent:.2f}"
    return {
        **dict.fromkeys(MODELS, endpoint.model),
        "ANTHROPIC_BASE_URL": endpoint.url,
        "ANTHROPIC_AUTH_TOKEN": endpoint.key,
        **fits,
    }


def _servers(job: Job) -> JsonObject:
    """`alwaysLoad`: the first call waits for the server, and its tools are shown from the start."""
    server = {"type": "http", "url": job.endpoint.mcp_url, "alwaysLoad": True}
    return {"mcpServers": {SERVER: server} if job.surface == "mcp" and job.tools else {}}


def _last_text(body: JsonObject) -> str:
    """The text of the last block of the last message."""
    messages: list[Any] = body.get("messages") or [{}]
    content = messages[-1].get("content")
    if isinstance(content, list) and content:
        return str(content[-1].get("text", ""))
    return str(content or "")
