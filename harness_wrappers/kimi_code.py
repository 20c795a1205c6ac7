"""Moonshot's Kimi Code, unmodified: `kimi -p` in the sandbox, its model calls through the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from harness_wrappers._common import SERVER, as_json, chat_text, ended, environment, events, toml
from rollout.harness import Finish, Harness, Job, Launch
from rollout.programs import NODE, Program
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import CallKind, JsonObject

__all__ = ["KimiCode"]


class KimiCode(Harness):
    """`kimi -p --output-format stream-json`, one KIMI_CODE_HOME per episode."""

    dialect = "chat"
    surfaces = ("mcp", "skill")
    converses = True
    program: ClassVar[Program | None] = Program(
        name="kimi",
        candidates=("programs/kimi_code/node_modules/@moonshot-ai/kimi-code/dist/main.mjs",),
        install="make harnesses, or npm install -g @moonshot-ai/kimi-code",
        package="@moonshot-ai/kimi-code",
        runtime=NODE,
    )

    def launch(self, job: Job, sandbox: Sandbox) -> Launch:
        home = f"{sandbox.home}/.kimi-code"
        mcp = job.surface == "mcp" and job.tools
        servers = {SERVER: {"url": job.endpoint.mcp_url}} if mcp else {}
        settings = _settings(job)
        files = {
            f"{home}/config.toml": toml(settings),
            f"{home}/mcp.json": as_json({"mcpServers": servers}),
        }
        files |= {f"{home}/skills/{path}": text for path, text in job.skills.items()}
        switches = {"KIMI_CODE_NO_AUTO_UPDATE": "1", "KIMI_DISABLE_TELEMETRY": "1"}
        env = environment(sandbox, KIMI_CODE_HOME=home, **switches)
        return Launch(
            (*self.command, "--output-format", "stream-json", "-p", job.prompt), env, files
        )

    def launch_again(self, job: Job, text: str, sandbox: Sandbox) -> Launch:
        first = self.launch(job, sandbox)
        return Launch((*first.argv[:-2], "--continue", "-p", text), first.env)

    def finish(self, result: ExecResult, collected: Mapping[str, bytes]) -> Finish:
        said = [event for event in events(result.stdout) if event.get("role") == "assistant"]
        answer = str(said[-1].get("content") or "") if said else ""
        return ended("kimi", result, answer=answer)

    @classmethod
    def classify(cls, headers: Mapping[str, str], body: JsonObject) -> tuple[CallKind, str]:
        session = str(body.get("prompt_cache_key", ""))
        if chat_text(body, -1).startswith("You are about to run out of context."):
            return "compaction", session
        subagent = "You are now running as a subagent." in chat_text(body, 0)
        return ("subagent" if subagent else "main"), session


def _settings(job: Job) -> JsonObject:
    endpoint = job.endpoint
    provider = {"type": "openai", "base_url": endpoint.model_url, "api_key": endpoint.key}
    model = {
        "provider": "gateway",
        "model": endpoint.model,
        "max_context_size": endpoint.context_window,
        "max_output_size": endpoint.max_output,
    }
    return {
        "default_model": "gateway",
        "telemetry": False,
        "providers": {"gateway": provider},
        "models": {"gateway": model},
    }
