"""What the wrappers of command-line agents share: environment, config files, reading how they ended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rollout.errors import HarnessError
from rollout.harness import Finish
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import JsonObject

__all__ = ["SERVER", "as_json", "chat_text", "ended", "environment", "events", "toml"]

SERVER = "tools"
"""The MCP server's name; most harnesses call its tools `mcp__tools__<name>`."""

LOG_CHARACTERS = 4000


def environment(sandbox: Sandbox, **more: str) -> dict[str, str]:
    """A clean environment with what every program needs, and `more`."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": sandbox.home,
        "LANG": "C.UTF-8",
        **more,
    }


def as_json(value: Any) -> str:
    """A config file."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def toml(settings: Mapping[str, Any], prefix: str = "") -> str:
    """A config file: dotted keys, one a line (toml.io/en/v1.0.0). Keys must be bare or dotted."""
    lines = ""
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            lines += toml(value, f"{prefix}{key}.")
        else:
            lines += f"{prefix}{key} = {_toml_value(value)}\n"
    return lines


def _toml_value(value: Any) -> str:
    """JSON's scalars are TOML's too, once DEL is escaped."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def events(stdout: bytes) -> Iterator[JsonObject]:
    """The JSON objects among a program's lines of output."""
    for line in stdout.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def ended(name: str, result: ExecResult, *, answer: str, failure: str = "") -> Finish:
    """How a program ended that said `answer`, and `failure` where it failed.

    Raises HarnessError for one that was killed.
    """
    log = result.stderr.decode(errors="replace")[-LOG_CHARACTERS:]
    if result.exit_code < 0:
        raise HarnessError(f"{name} was ended by signal {-result.exit_code}")
    failed = ""
    if failure or result.exit_code:
        why = failure or " ".join(log.strip().splitlines()[-1:]) or "no message"
        failed = f"{name} ended with exit code {result.exit_code}: {why}"
    return Finish(answer=answer, exit_code=result.exit_code, log=log, failed=failed)


def chat_text(body: JsonObject, index: int) -> str:
    """The text of a chat request's message at `index`; empty where there is none."""
    messages = body.get("messages") or []
    if not -len(messages) <= index < len(messages):
        return ""
    content = messages[index].get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)
