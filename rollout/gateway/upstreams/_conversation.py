"""Reading a chat conversation the way a model does: tools on offer, calls made, skills mentioned.

Scripted policies know nothing of the harness but this. Four ways to a task's tool are understood: a line
`Action: NAME {JSON}`, where the harness asks for such lines and reports in `Observation:` ones; a
function of its name (`x`, `mcp__server__x`, `server_x`), which may want its arguments as JSON text; a
catalogue in which it is found by that name (`rollout.gateway.upstreams._catalog`); and a shell with the
curl command that the tool's SKILL.md documents (`rollout.gateway.tools.skills`). The SKILL.md is read
with the shell where the harness names its path, or loaded with a function `Skill(skill)` where it names
only skills.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rollout.gateway.upstreams import _catalog
from rollout.types import JsonObject, ToolReply

__all__ = ["Conversation", "Function", "Unreadable", "documented", "tool_of"]

SHELL_NAME = re.compile(r"bash|shell|exec|terminal|command", re.I)
SHELL_ARGUMENTS = ("cmd", "command")
SHELL_PATIENCE = ("yield_time_ms", "yieldMs")
SKILL_PATH = re.compile(r"[^\s`'\"()<>\[\]]*SKILL\.md")
SKILL_LINE = re.compile(r"^\s*- ([\w-]+): (.*)$", re.M)
ACTION = re.compile(r"^Action: *([\w.-]+) *(\{.*\})\s*$", re.M)
ASKED_ACTION = "Action: NAME {JSON}"
OBSERVATION = "Observation: "
SKILL_ROOT = re.compile(r"`([^`/\s]+)` = `([^`]+)`")
CURL = re.compile(r"^curl [^`]*?/([\w.-]+) --data-binary @- <<'JSON'\n(.*?)\nJSON$", re.M | re.S)
STATUS = re.compile(r"[1-5]\d\d")
JSON_TEXT = "json_arguments"
"""The one argument of functions that run curl with a tool's arguments as JSON text."""


class Unreadable(str):
    """A tool's reply that the harness did not hand on whole: its text, as it stands."""


@dataclass(frozen=True)
class Function:
    """A function that the harness offers."""

    name: str
    schema: JsonObject

    @property
    def shell_argument(self) -> str:
        """The argument that takes a shell command; empty where this is no shell."""
        properties = self.schema.get("properties") or {}
        found = [name for name in SHELL_ARGUMENTS if name in properties]
        return found[0] if found and SHELL_NAME.search(self.name) else ""

    @property
    def loads_skills(self) -> bool:
        """Whether it shows a skill that is named to it, as Claude Code's does."""
        return self.name.lower() == "skill" and "skill" in (self.schema.get("properties") or {})

    @property
    def runs_curl(self) -> bool:
        """Whether it takes JSON text and hands on what curl prints, as ZeroClaw's skill tools do."""
        return list(self.schema.get("properties") or {}) == [JSON_TEXT]

    def tool_arguments(self, arguments: Any) -> JsonObject:
        """A tool's arguments as this function takes them."""
        text = json.dumps(arguments, ensure_ascii=False)
        return {JSON_TEXT: text} if self.runs_curl else arguments

    def shell_arguments(self, command: str) -> JsonObject:
        """Arguments that run `command`, whatever else the schema asks for."""
        properties: dict[str, JsonObject] = self.schema["properties"]
        listed = properties[self.shell_argument].get("type") == "array"
        arguments: JsonObject = {
            name: "use one of the task's tools"
            for name in self.schema.get("required", ())
            if properties.get(name, {}).get("type") == "string"
        }
        arguments |= {name: 30_000 for name in SHELL_PATIENCE if name in properties}
        return arguments | {self.shell_argument: ["bash", "-lc", command] if listed else command}


class Conversation:
    """A chat request: messages and tools."""

    def __init__(self, body: JsonObject, tools: Sequence[str]) -> None:
        self._messages: list[JsonObject] = body.get("messages") or []
        self._tools = tools
        self.functions = [
            Function(function["name"], function.get("parameters") or {})
            for item in body.get("tools") or ()
            if (function := item.get("function"))
        ]
        self._running_curl = {item.name for item in self.functions if item.runs_curl}

    @property
    def shell(self) -> Function | None:
        return next((found for found in self.functions if found.shell_argument), None)

    @property
    def skill_loader(self) -> Function | None:
        return next((item for item in self.functions if item.loads_skills), None)

    def function_for(self, tool: str) -> Function | None:
        """The offered function that is the task's `tool`; an exact name comes first."""
        found = [item for item in self.functions if self._is(item.name, tool)]
        ranked = sorted(found, key=lambda item: (item.name != tool, f"__{tool}" not in item.name))
        return ranked[0] if ranked else None

    def history(self) -> list[tuple[str, ToolReply]]:
        """The task's tools called so far, by whichever way, and what they replied."""
        calls = []
        for name, arguments, output in self._answered():
            if tool := tool_of(name, self._tools):
                read = _curl_reply if name in self._running_curl else _reply
                calls.append((tool, read(output)))
            elif name == _catalog.CALL and (tool := self._tool_in(arguments)):
                calls.append((tool, _reply(_catalog.result_in(output))))
            elif match := CURL.search(_command(arguments)):
                calls.append((match[1], _curl_reply(output)))
        return calls

    @property
    def writes_actions(self) -> bool:
        """Whether the harness reads its actions from text."""
        return not self.functions and ASKED_ACTION in self._told()

    @property
    def has_catalog(self) -> bool:
        return {_catalog.SEARCH, _catalog.CALL} <= {item.name for item in self.functions}

    def cataloged(self, tool: str) -> str:
        """The name of `tool` in the catalogue; empty where no search has found it."""
        found = [
            name
            for function, _, output in self._answered()
            if function == _catalog.SEARCH
            for name in _catalog.names_in(output)
            if self._is(name, tool)
        ]
        # A bare name is a tool of the harness's own.
        return min(found, key=lambda name: name == tool, default="")

    def has_searched(self, tool: str) -> bool:
        """Whether the catalogue was asked for `tool`."""
        return any(
            function == _catalog.SEARCH and arguments.get("query") == tool
            for function, arguments, _ in self._answered()
        )

    def shell_outputs(self) -> dict[str, str]:
        """Shell commands run so far, and their latest outputs."""
        return {_command(arguments): output for _, arguments, output in self._answered()}

    def documented(self, tool: str, arguments: Any) -> str | None:
        """The curl command for `tool`, from whatever SKILL.md has been read so far."""
        texts = (_text(message) for message in self._messages if message.get("role") != "assistant")
        return next(filter(None, (documented(text, tool, arguments) for text in texts)), None)

    def unloaded_skill(self, tool: str) -> str | None:
        """A skill on the harness's list that names `tool` and has not been loaded yet."""
        loaded = {arguments.get("skill") for _, arguments, _ in self._answered()}
        for name, description in SKILL_LINE.findall(self._told()):
            if name not in loaded and _names(description, tool):
                return str(name)
        return None

    def skill_paths(self, tool: str) -> list[str]:
        """Paths of the SKILL.md files that were mentioned, those first whose description names `tool`."""
        paths = self._skills(tool)
        return sorted(paths, key=lambda path: not paths[path])

    def _skills(self, tool: str) -> dict[str, bool]:
        text = self._told()
        roots = dict(SKILL_ROOT.findall(text))
        paths: dict[str, bool] = {}
        last = 0
        for match in SKILL_PATH.finditer(text):
            root, _, rest = match[0].partition("/")
            path = f"{roots[root]}/{rest}" if root in roots and rest else match[0]
            if "/" in path:
                named = _names(text[last : match.start()], tool)
                paths[path] = paths.get(path, False) or named
            last = match.end()
        return paths

    def _is(self, function: str, tool: str) -> bool:
        return tool_of(function, self._tools) == tool

    def _tool_in(self, arguments: JsonObject) -> str:
        return tool_of(str(arguments.get("id", "")), self._tools)

    def skills_naming(self, tool: str) -> list[str]:
        """Paths of the SKILL.md files whose description names `tool`."""
        return [path for path, names in self._skills(tool).items() if names]

    def _told(self) -> str:
        """What the harness and the user said."""
        told = (m for m in self._messages if m.get("role") not in ("tool", "assistant"))
        return "\n".join(map(_text, told))

    def _answered(self) -> Iterator[tuple[str, JsonObject, str]]:
        outputs = {
            message.get("tool_call_id"): _text(message)
            for message in self._messages
            if message.get("role") == "tool"
        }
        for message in self._messages:
            for call in message.get("tool_calls") or ():
                function = call.get("function") or {}
                if call.get("id") in outputs:
                    arguments = _json(function.get("arguments") or "{}")
                    known = arguments if isinstance(arguments, dict) else {}
                    yield function.get("name", ""), known, outputs[call["id"]]
        yield from self._observed()

    def _observed(self) -> Iterator[tuple[str, JsonObject, str]]:
        """Actions that were written, and what the messages after them say of them."""
        for said, told in itertools.pairwise(self._messages):
            action = ACTION.search(_text(said)) if said.get("role") == "assistant" else None
            if action and (output := _text(told)).startswith(OBSERVATION):
                arguments = _json(action[2])
                known = arguments if isinstance(arguments, dict) else {}
                yield action[1], known, output.removeprefix(OBSERVATION)


def tool_of(function: str, tools: Sequence[str]) -> str:
    """The task's tool that a function of this name is; empty where it is none."""
    found = [tool for tool in tools if function == tool or function.endswith(f"_{tool}")]
    return max(found, key=len, default="")


def documented(text: str, tool: str, arguments: Any) -> str | None:
    """The curl command that a SKILL.md documents for `tool`, with other arguments."""
    for match in CURL.finditer(text):
        if match[1] == tool:
            body = json.dumps(arguments, ensure_ascii=False)
            start, end = match.start(2) - match.start(), match.end(2) - match.start()
            return match[0][:start] + body + match[0][end:]
    return None


def _names(text: str, tool: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(tool)}(?!\w)", text) is not None


def _text(message: JsonObject) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _command(arguments: JsonObject) -> str:
    for name in SHELL_ARGUMENTS:
        if command := arguments.get(name):
            return command if isinstance(command, str) else str(command[-1])
    return ""


def _reply(output: str) -> ToolReply:
    """The JSON body that a harness handed on: alone, as a line, or at the start of one."""
    lines = output.splitlines()
    for text in (output, *reversed(lines)):
        if (body := _json(text)) is not None or text.strip() == "null":
            return ToolReply(body=body)
    opened = (_opening(line) for line in lines if line.startswith("{"))
    body = next((body for body in opened if body is not None), Unreadable(output))
    return ToolReply(body=body)


def _curl_reply(output: str) -> ToolReply:
    """Body and status, on the two lines that the documented command prints."""
    lines = output.splitlines()
    for body, status in zip(lines[-2::-1], lines[:0:-1], strict=False):
        known = _json(body)
        if STATUS.fullmatch(status.strip()) and (known is not None or body.strip() == "null"):
            return ToolReply(status=int(status), body=known)
    return ToolReply(body=Unreadable(output))


def _opening(line: str) -> Any:
    """The object that a line begins with: Kimi Code writes on after it where there is a picture."""
    try:
        return json.JSONDecoder().raw_decode(line)[0]
    except ValueError:
        return None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
