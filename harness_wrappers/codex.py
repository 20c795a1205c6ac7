"""OpenAI's Codex CLI, unmodified: `codex exec` in the sandbox, its model calls through the gateway.

Codex keeps its own base prompt, tools, sub-agents and compaction. What is switched off would need
OpenAI's servers (web search, apps, plugins, bundled skills, telemetry, update checks), ask a person
(approvals), isolate a second time (its own sandbox) or retry what the gateway has retried already.
Configuration: developers.openai.com/codex/config-reference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from harness_wrappers._common import SERVER, ended, environment, events, toml
from rollout.harness import Finish, Harness, Job, Launch
from rollout.programs import Program
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import CallKind, JsonObject

__all__ = ["Codex"]

NATIVE = "vendor/*/bin/codex"
"""The executable inside the npm package of one platform; it needs no Node."""

TOOL_OUTPUT_TOKENS = 10_000
"""What Codex lets its own models see of one tool's output; it would cut other models at 10 KB."""

SETTINGS: JsonObject = {
    "model_provider": "gateway",
    "approval_policy": "never",
    "sandbox_mode": "danger-full-access",
    "check_for_update_on_startup": False,
    "web_search": "disabled",
    "tool_output_token_limit": TOOL_OUTPUT_TOKENS,
    "cli_auth_credentials_store": "file",
    "model_providers.gateway.name": "gateway",
    "model_providers.gateway.env_key": "GATEWAY_KEY",
    "model_providers.gateway.wire_api": "responses",
    "model_providers.gateway.request_max_retries": 0,
    "model_providers.gateway.stream_max_retries": 0,
    "model_providers.gateway.stream_idle_timeout_ms": 1_800_000,
    "model_providers.gateway.supports_websockets": False,
    "features.unbounded_connection_retries": False,
    "features.apps": False,
    "features.plugins": False,
    "skills.bundled.enabled": False,
    "analytics.enabled": False,
    "feedback.enabled": False,
    "otel.exporter": "none",
    "history.persistence": "none",
}


class Codex(Harness):
    """`codex exec --json`, one CODEX_HOME per episode."""

    dialect = "responses"
    surfaces = ("mcp", "skill")
    converses = True
    program: ClassVar[Program | None] = Program(
        name="codex",
        candidates=(f"node_modules/@openai/codex-*/{NATIVE}",),
        install="npm ci (in the project's folder), or npm install -g @openai/codex",
        package="@openai/codex",
    )

    presets: ClassVar[Mapping[str, JsonObject]] = {
        "default": {},
        "solo": {"agents.enabled": False},
        "slim": {
            "agents.enabled": False,
            "features.goals": False,
            "features.view_image": False,
        },
    }

    async def prepare(self) -> None:
        await super().prepare()
        self.executable = str(_native(Path(self.executable)))

    @property
    def program_folders(self) -> tuple[Path, ...]:
        """The whole platform package: ripgrep and other helpers lie beside `bin`."""
        package = Path(self.executable).parent.parent
        if (package / "codex-package.json").is_file():
            return (package,)
        return super().program_folders

    def launch(self, job: Job, sandbox: Sandbox) -> Launch:
        home = f"{sandbox.home}/.codex"
        files = {f"{home}/config.toml": toml({**_settings(job), **self.options})}
        files |= {f"{home}/skills/{path}": text for path, text in job.skills.items()}
        return self._launch(job, sandbox, ("--", job.prompt), files)

    def launch_again(self, job: Job, text: str, sandbox: Sandbox) -> Launch:
        return self._launch(job, sandbox, ("resume", "--last", "--", text), {})

    def _launch(
        self, job: Job, sandbox: Sandbox, words: tuple[str, ...], files: Mapping[str, str]
    ) -> Launch:
        home = f"{sandbox.home}/.codex"
        answer = f"{home}/last-message.txt"
        argv = ("exec", "--json", "--skip-git-repo-check", "-C", sandbox.workspace, "-o", answer)
        env = environment(sandbox, CODEX_HOME=home, GATEWAY_KEY=job.endpoint.key)
        # Emptied first: where a turn has no message, the last one's must not pass for it.
        files = {**files, answer: ""}
        return Launch((self.executable, *argv, *words), env, files, collect=(answer,))

    def finish(self, result: ExecResult, collected: Mapping[str, bytes]) -> Finish:
        said = list(events(result.stdout))
        written = b"".join(collected.values()).decode(errors="replace").strip()
        failure = _failure(said) if result.exit_code else ""
        return ended("codex", result, answer=written or _last_message(said), failure=failure)

    @classmethod
    def classify(cls, headers: Mapping[str, str], body: JsonObject) -> tuple[CallKind, str]:
        agent = headers.get("thread-id", "")
        try:
            metadata = json.loads(headers.get("x-codex-turn-metadata", "{}"))
        except ValueError:
            metadata = {}
        if isinstance(metadata, dict) and metadata.get("request_kind") == "compaction":
            return "compaction", agent
        return ("subagent" if "x-openai-subagent" in headers else "main"), agent

    def fingerprint(self) -> JsonObject:
        return super().fingerprint() | {"settings": SETTINGS}


def _native(path: Path) -> Path:
    """The executable behind npm's Node launcher; the path itself where it is no launcher."""
    script = path.resolve()
    if script.suffix != ".js":
        return path
    package = script.parent.parent
    for folder in (package / "node_modules/@openai", package.parent):
        for found in sorted(folder.glob(f"codex-*/{NATIVE}")):
            return found
    return path


def _settings(job: Job) -> JsonObject:
    window, reply = job.endpoint.context_window, job.endpoint.max_output
    settings = SETTINGS | {
        "model": job.endpoint.model,
        "model_context_window": window,
        # Codex's own 90 %, or earlier where a full reply would not fit in the rest.
        "model_auto_compact_token_limit": max(window // 2, min(window * 9 // 10, window - reply)),
        "model_providers.gateway.base_url": job.endpoint.model_url,
    }
    if job.surface == "mcp" and job.tools:
        settings |= {
            f"mcp_servers.{SERVER}.url": job.endpoint.mcp_url,
            # Without it Codex would go on without tools when their server can't be reached.
            f"mcp_servers.{SERVER}.required": True,
            f"mcp_servers.{SERVER}.startup_timeout_sec": 120,
            f"mcp_servers.{SERVER}.tool_timeout_sec": 600,
        }
    return settings


def _failure(events: list[JsonObject]) -> str:
    """The message of the last error event; empty when there was none."""
    for event in reversed(events):
        if event.get("type") == "turn.failed":
            return str(event.get("error", {}).get("message", ""))
        if event.get("type") == "error":
            return str(event.get("message", ""))
    return ""


def _last_message(events: list[JsonObject]) -> str:
    for event in reversed(events):
        item = event.get("item", {})
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            return str(item.get("text", ""))
    return ""
