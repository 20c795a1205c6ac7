"""The agent's own shell and file calls, as the sandbox tools that claw-eval's graders know.

claw-eval's container brings Bash, Read and Write along, and some tasks grade what was done with them. A
real harness has tools of its own for that; this is how its calls are told to those graders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from rollout.transcript import turns
from rollout.types import JsonObject, ToolCall, Trace

__all__ = ["builtin_dispatches"]

SHELLS = frozenset(
    {
        "bash",
        "exec",
        "exec_command",
        "local_shell",
        "run_command",
        "shell",
        "shell_command",
        "terminal",
    }
)
READERS = frozenset({"read", "read_file", "readfile", "view"})
WRITERS = frozenset({"create_file", "write", "write_file", "writefile"})
COMMANDS, PATHS, TEXTS = ("command", "cmd"), ("file_path", "path", "filename"), ("content", "text")
EXIT_CODE = re.compile(r"exit(?:ed with)? code:? (\d+)", re.I)


def builtin_dispatches(trace: Trace) -> list[ToolCall]:
    """Bash, Read and Write calls in order, numbered after the trace's own tool calls.

    Their status is 200, as claw-eval's sandbox answers whatever became of the command.
    """
    first = len(trace.tool_calls)
    return [
        ToolCall(
            index=first + n,
            name=name,
            arguments=arguments,
            status=200,
            reply=reply,
            surface="native",
        )
        for n, (name, arguments, reply) in enumerate(_calls(trace))
    ]


def _calls(trace: Trace) -> Iterator[tuple[str, JsonObject, JsonObject]]:
    said = turns(trace)
    for turn, following in zip(said, [*said[1:], None], strict=True):
        heard = following.heard if following else ()
        outputs = [message for message in heard if message["role"] == "tool"]
        by_id = {message.get("tool_call_id"): message for message in outputs}
        for n, asked in enumerate(turn.said.get("tool_calls") or ()):
            found = _known(asked.get("function") or {})
            if found is not None:
                # Harnesses may give calls other ids when they send them back; the order stays.
                told = by_id.get(asked.get("id")) or (outputs[n] if n < len(outputs) else {})
                yield (*found, _reply(found[0], _text(told.get("content"))))


def _known(function: JsonObject) -> tuple[str, JsonObject] | None:
    """The sandbox tool that a call of the harness's own amounts to, with claw-eval's arguments."""
    name = str(function.get("name", "")).rpartition("__")[2].lower()
    try:
        sent = json.loads(function.get("arguments") or "{}")
    except ValueError:
        return None
    if not isinstance(sent, dict):
        return None
    if name in SHELLS and (command := _first(sent, COMMANDS)) is not None:
        return "Bash", {"command": command if isinstance(command, str) else str(command[-1])}
    if name in READERS and (path := _first(sent, PATHS)) is not None:
        return "Read", {"file_path": path}
    if name in WRITERS and (path := _first(sent, PATHS)) is not None:
        return "Write", {"file_path": path, "content": _first(sent, TEXTS) or ""}
    return None


def _first(sent: JsonObject, names: tuple[str, ...]) -> Any:
    return next((sent[name] for name in names if sent.get(name)), None)


def _reply(name: str, output: str) -> JsonObject:
    if name != "Bash":
        return {"content": output}
    code = EXIT_CODE.search(output)
    return {"exit_code": int(code[1]) if code else 0, "stdout": output, "stderr": ""}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(
        str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part
    )
