"""OpenClaw, unmodified: `openclaw agent exec` in the sandbox, its model calls through the gateway.

`agent exec` is OpenClaw's own way to run one task without a person: it brings the coding tools, full
shell access and no approvals. `agent --local` with the same settings goes on with a conversation. The
default preset leaves everything else as OpenClaw ships it: its prompt, bundled skills and plugins, and
MCP tools that are found through `tool_search`. What is switched off would need the internet: update
checks, and web tools, whose names tasks have for tools of their own. OpenClaw rewrites a conversation as
it goes (call ids, the context message at the end, compaction), so a call's prompt is what that call sent.

Each start costs about ten seconds of processor time and 1 to 1.4 GB. Sub-agents need OpenClaw's own
long-lived gateway: without one their start fails, and the model is told so.

Configuration: docs.openclaw.ai/gateway/configuration-reference, docs.openclaw.ai/cli/agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from harness_wrappers._common import SERVER, as_json, ended, environment
from rollout.errors import HarnessError
from rollout.harness import Finish, Harness, Job, Launch
from rollout.programs import NODE, Program
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import CallKind, JsonObject

__all__ = ["OpenClaw"]

CONVERSATION = "agent:main:conversation"
"""Key of the session that an episode with a user goes on with."""

NEVER = 86_400
"""Seconds: the episode's own limit ends it long before."""

TOOLS: JsonObject = {
    "profile": "coding",
    "fs": {"workspaceOnly": True},
    "exec": {"security": "full", "ask": "off"},
    "web": {"search": {"enabled": False}, "fetch": {"enabled": False}},
}
"""But for `web`, what `agent exec` sets by itself and `agent --local` does not."""

POLICY_ENDS = {
    "context_overflow": "the conversation no longer fits in the context window",
    "incomplete_turn": "the last reply can't be used",
}
"""Kinds of error that the model brought about. The gateway sees no refused call where the last one was a
summary that helped nothing, and no wrong one where a tool's arguments are no JSON."""

NO_ANSWER = "couldn't generate a response"
"""The model's last reply was empty or `NO_REPLY`, and again when OpenClaw asked for an answer."""

NO_TOOLS = re.compile(r"^\[bundle-mcp\] failed to start server .*", re.MULTILINE)
"""On stderr: OpenClaw goes on without the tools, which would count as the model's failure."""

UNSAFE = re.compile(r"[^\w.:/-]")
"""In a model's name `@` would ask for a login; the gateway forwards the real name whatever is sent."""

SUMMARIZER = "You are a context summarization assistant."
"""How the prompt of every compaction begins."""

SESSION = re.compile(r"^Runtime: agent=\S+ \| session=(\S+) \|.*\Z", re.MULTILINE)
"""The last line of what opens a turn; a sub-agent's key is `agent:<id>:subagent:<uuid>`."""


class OpenClaw(Harness):
    """`openclaw agent exec --json`, one HOME and state folder per episode."""

    dialect = "chat"
    surfaces = ("mcp", "skill")
    converses = True
    program: ClassVar[Program | None] = Program(
        name="openclaw",
        candidates=("programs/openclaw/node_modules/openclaw/openclaw.mjs",),
        install="make harnesses, or npm install -g openclaw",
        package="openclaw",
        runtime=replace(NODE, oldest=(24, 16)),
    )
    presets: ClassVar[Mapping[str, JsonObject]] = {
        "default": {},
        "direct": {"tools": {"toolSearch": False}},
        "slim": {
            "plugins": {"enabled": False},
            "skills": {"allowBundled": ["none"]},
            "tools": {
                "toolSearch": False,
                "allow": ["read", "write", "edit", "exec", "process", "ls", f"{SERVER}__*"],
            },
        },
    }

    def launch(self, job: Job, sandbox: Sandbox) -> Launch:
        return self._launch(job, job.prompt, sandbox)

    def launch_again(self, job: Job, text: str, sandbox: Sandbox) -> Launch:
        return self._launch(job, text, sandbox)

    def _launch(self, job: Job, text: str, sandbox: Sandbox) -> Launch:
        state = f"{sandbox.home}/.openclaw"
        config, message = f"{state}/openclaw.json", f"{state}/message.md"
        settings = _merged(_settings(job, sandbox.workspace), self.options)
        files = {config: as_json(settings), message: text}
        files |= {f"{state}/skills/{path}": skill for path, skill in job.skills.items()}
        how: tuple[str, ...] = ("--local", "--agent", "main", "--session-key", CONVERSATION)
        if job.reply is None:
            where = ("--state-dir", state, "--cwd", sandbox.workspace)
            how = ("exec", "--config", config, *where)
        argv = ("agent", *how, "--json", "--timeout", str(NEVER), "--message-file", message)
        # Each episode has a user and a HOME of its own: a cache would be written and never read.
        env = environment(sandbox, GATEWAY_KEY=job.endpoint.key, NODE_DISABLE_COMPILE_CACHE="1")
        return Launch((*self.command, *argv), env, files)

    def finish(self, result: ExecResult, collected: Mapping[str, bytes]) -> Finish:
        if found := NO_TOOLS.search(result.stderr.decode(errors="replace")):
            raise HarnessError(f"openclaw ran without the task's tools: {found[0]}")
        answer, error = _ending(result.stdout)
        failure = str(error.get("message", ""))
        finish = ended("openclaw", result, answer=answer, failure=failure)
        if why := POLICY_ENDS.get(str(error.get("kind"))):
            return replace(finish, gave_up=f"{why}: {failure}", failed="")
        if NO_ANSWER in failure:
            return replace(finish, gave_up=failure, failed="")
        return finish

    @classmethod
    def classify(cls, headers: Mapping[str, str], body: JsonObject) -> tuple[CallKind, str]:
        messages: list[JsonObject] = body.get("messages") or []
        if messages and _text(messages[0]).startswith(SUMMARIZER):
            return "compaction", ""
        for message in messages:
            if message.get("role") == "user" and (found := SESSION.search(_text(message))):
                return ("subagent" if ":subagent:" in found[1] else "main"), found[1]
        return "main", ""

    def fingerprint(self) -> JsonObject:
        return super().fingerprint() | {"mode": "exec", "tools": TOOLS}


def _settings(job: Job, workspace: str) -> JsonObject:
    endpoint = job.endpoint
    name = UNSAFE.sub("-", endpoint.model).lstrip("/")
    model = {
        "id": name,
        "name": name,
        "reasoning": False,
        "input": ["text", "image"],
        "contextWindow": endpoint.context_window,
        "maxTokens": endpoint.max_output,
    }
    provider = {
        "baseUrl": endpoint.model_url,
        "apiKey": "${GATEWAY_KEY}",
        "api": "openai-completions",
        "timeoutSeconds": NEVER,
        "models": [model],
    }
    server = {
        "url": endpoint.mcp_url,
        "transport": "streamable-http",
        "connectionTimeoutMs": 120_000,
        "requestTimeoutMs": 600_000,
    }
    return {
        "models": {"mode": "replace", "providers": {"gateway": provider}},
        "mcp": {"servers": {SERVER: server} if job.surface == "mcp" and job.tools else {}},
        "update": {"checkOnStart": False},
        "agents": {
            "defaults": {
                "model": {"primary": f"gateway/{name}"},
                "workspace": workspace,
                "skipBootstrap": True,
            }
        },
        "tools": TOOLS,
    }


def _merged(settings: JsonObject, more: Mapping[str, Any]) -> JsonObject:
    """Nested settings with those of a preset."""
    merged = dict(settings)
    for key, value in more.items():
        inner = merged.get(key)
        merged[key] = _merged(inner, value) if isinstance(inner, dict) else value
    return merged


def _ending(stdout: bytes) -> tuple[str, JsonObject]:
    """The final text and the error that `--json` prints, of `agent exec` or of `agent --local`."""
    try:
        said = json.loads(stdout)
    except ValueError:
        return "", {}
    if not isinstance(said, dict):
        return "", {}
    payloads = said.get("payloads") or ()
    texts = [str(part.get("text") or "") for part in payloads if not part.get("isError")]
    error = said.get("error") or said.get("meta", {}).get("error") or {}
    return said.get("final", "\n".join(filter(None, texts))), error


def _text(message: JsonObject) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)
