"""OpenCode, unmodified: `opencode run` in the sandbox, its model calls through the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness_wrappers._common import SERVER, as_json, chat_text, ended, environment, events
from rollout.harness import Finish, Harness, Job, Launch
from rollout.programs import Program
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import CallKind, JsonObject

__all__ = ["OpenCode"]

SWITCHES = ("DISABLE_AUTOUPDATE", "DISABLE_MODELS_FETCH", "DISABLE_LSP_DOWNLOAD")

QUIET = ("run", "--format", "json", "--title", "task")
"""With a title given, none is asked of the model."""


class OpenCode(Harness):
    """`opencode run --format json`, one HOME per episode."""

    dialect = "chat"
    surfaces = ("mcp", "skill")
    converses = True
    program: ClassVar[Program | None] = Program(
        name="opencode",
        candidates=("programs/opencode/node_modules/opencode-*64/bin/opencode",),
        install="make harnesses, or npm install -g opencode-ai",
        package="opencode-linux-x64",
    )

    def launch(self, job: Job, sandbox: Sandbox) -> Launch:
        home = f"{sandbox.home}/.config/opencode"
        files = {f"{home}/opencode.json": as_json(_settings(job)), f"{home}/prompt": job.prompt}
        files |= {f"{home}/skills/{path}": text for path, text in job.skills.items()}
        env = environment(sandbox, GATEWAY_KEY=job.endpoint.key)
        env |= {f"OPENCODE_{name}": "1" for name in SWITCHES}
        # A prompt with spaces is put in quotes when it is an argument; by stdin it comes as it is.
        argv = ("sh", "-c", 'exec "$@" < "$0"', f"{home}/prompt", *self.command, *QUIET)
        return Launch(argv, env, files)

    def launch_again(self, job: Job, text: str, sandbox: Sandbox) -> Launch:
        first = self.launch(job, sandbox)
        return Launch((*first.argv, "--continue"), first.env, {first.argv[3]: text})

    def finish(self, result: ExecResult, collected: Mapping[str, bytes]) -> Finish:
        said = [event for event in events(result.stdout) if event.get("type") == "text"]
        errors = [event for event in events(result.stdout) if event.get("type") == "error"]
        answer = str(said[-1]["part"]["text"]) if said else ""
        return ended("opencode", result, answer=answer, failure=str(errors[-1]) if errors else "")

    @classmethod
    def classify(cls, headers: Mapping[str, str], body: JsonObject) -> tuple[CallKind, str]:
        session = headers.get("x-session-id", "")
        if "context summarization agent" in chat_text(body, 0):
            return "compaction", session
        if not body.get("tools"):
            return "side", session
        return ("subagent" if "x-parent-session-id" in headers else "main"), session


def _settings(job: Job) -> JsonObject:
    endpoint, name = job.endpoint, f"gateway/{job.endpoint.model}"
    limit = {"context": endpoint.context_window, "output": endpoint.max_output}
    modalities = {"input": ["text", "image"], "output": ["text"]}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": endpoint.model_url, "apiKey": "{env:GATEWAY_KEY}"},
        "models": {endpoint.model: {"limit": limit, "attachment": True, "modalities": modalities}},
    }
    server = {"type": "remote", "url": endpoint.mcp_url, "enabled": True, "timeout": 120_000}
    return {
        **{"model": name, "small_model": name, "provider": {"gateway": provider}},
        **{"autoupdate": False, "share": "disabled", "permission": "allow"},
        "mcp": {SERVER: server} if job.surface == "mcp" and job.tools else {},
    }
