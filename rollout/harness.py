"""The contract of a harness: the agent program that drives the model, treated as a black box.

One file in `harness_wrappers/` that exports one `Harness` subclass is a new harness. A command-line
program needs `launch()` and `finish()`; an in-process loop overrides `run()` instead.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from rollout.contract import Checked, returned
from rollout.errors import HarnessError
from rollout.plugins import unknown
from rollout.programs import SCRIPTS, Found, Program
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import (
    CallKind,
    DialectName,
    JsonObject,
    Task,
    ToolReply,
    ToolSpec,
    ToolSurface,
)

__all__ = ["Endpoint", "Finish", "Harness", "Job", "Launch"]

LOG_CHARACTERS = 4000
"""Of a program's output, kept in the trace."""


@dataclass(frozen=True)
class Endpoint:
    """The gateway's address for one episode, as seen from where the harness runs."""

    url: str
    """`http://127.0.0.1:PORT/e/<token>`; the token is unguessable."""
    key: str
    """The API key to send with model calls."""
    model: str
    """The model name to ask for."""
    context_window: int = 131_072
    """Tokens; prompt and reply together."""
    max_output: int = 8_192
    """Tokens of one reply at most."""

    @property
    def model_url(self) -> str:
        """OpenAI-style base URL. Anthropic clients add `/v1` themselves: give them `url`."""
        return f"{self.url}/v1"

    @property
    def mcp_url(self) -> str:
        """The task's tools as an MCP server (streamable HTTP)."""
        return f"{self.url}/mcp"

    @property
    def tools_url(self) -> str:
        """The task's tools as REST: POST a JSON body to `<tools_url>/<name>`."""
        return f"{self.url}/tools"


@dataclass(frozen=True)
class Job:
    """What a harness is asked to do in one episode."""

    prompt: str
    endpoint: Endpoint
    surface: ToolSurface
    tools: tuple[ToolSpec, ...] = ()
    skills: Mapping[str, str] = field(default_factory=dict)
    """On the `skill` surface: `<group>/SKILL.md` -> text, to be put where the harness finds skills."""
    call_tool: Callable[[str, Any], Awaitable[ToolReply]] | None = None
    """On the `native` surface: dispatches a tool call in process."""
    max_turns: int = 0
    """Limit on the agent's model calls; 0 is none."""
    reply: Callable[[str], Awaitable[str | None]] | None = None
    """Takes an answer and returns the user's reply; None when the conversation is over. Absent where the
    task has no user who replies."""


@dataclass(frozen=True)
class Launch(Checked):
    """A command to run in the sandbox."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment, PATH and HOME included."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Absolute path inside the sandbox -> text, written before the start."""
    collect: tuple[str, ...] = ()
    """Absolute paths to read back afterwards, for `finish()`."""


@dataclass(frozen=True)
class Finish(Checked):
    """How the harness ended."""

    answer: str = ""
    """Its final message to the user."""
    exit_code: int = 0
    log: str = ""
    """The tail of its output."""
    gave_up: str = ""
    """Why the agent ended without an answer, by its own doing. The attempt is graded all the same."""
    failed: str = ""
    """What the program says of its own failure. Whose fault that was is decided from its last model call:
    the policy's, and the attempt is graded; or else the harness's, and it is run again."""


class Harness(ABC):
    """Wraps one agent program. Instances are shared by concurrent episodes: keep no state."""

    dialect: ClassVar[DialectName]
    surfaces: tuple[ToolSurface, ...]
    """Tool surfaces it supports, the default first; a preset may leave some out."""
    program: ClassVar[Program | None] = None
    """The executable it needs; None for an in-process loop, which also needs no sandbox."""
    converses: ClassVar[bool] = False
    """Whether it can go on when the user replies to an answer. A program does so by `launch_again()`, a
    loop that overrides `run()` by `Job.reply`."""

    presets: ClassVar[Mapping[str, JsonObject]] = {"default": {}}
    """Named options that change how the agent behaves; `default` is what its users deploy."""

    def __init__(self, program: str = "", preset: str = "default") -> None:
        """Raises UsageError for a preset that there is not."""
        if preset not in self.presets:
            name = type(self).__module__.rpartition(".")[2]
            raise unknown(f"preset of harness {name}", preset, self.presets)
        self.preset = preset
        self.options = self.presets[preset]
        self.executable = program
        """Path of the program, once `prepare()` has found it."""
        self.runtime = ""
        """Path of the interpreter that starts it, where it is a script."""
        self.version = ""

    async def prepare(self) -> None:
        """Find the program and ask its version. Raises UsageError with the way to install it."""
        if self.program is not None:
            found = await self.program.find(self.executable)
            self.executable, self.runtime, self.version = found.path, found.runtime, found.version

    @property
    def note(self) -> str:
        """A line for the user where the program's version is not the one that is tested; else empty."""
        tested = self.program.tested if self.program else ""
        if self.program is None or tested in ("", self.version):
            return ""
        return f"tested with {self.program.name} {tested}, found {self.version}"

    @property
    def command(self) -> tuple[str, ...]:
        """The beginning of the command line, before the program's arguments."""
        return Found(self.executable, runtime=self.runtime).command

    @property
    def program_folders(self) -> tuple[Path, ...]:
        """Host folders that a sandbox must show, at the same path, for the program to run."""
        folders: list[Path] = []
        for path in map(Path, filter(None, self.command)):
            folders += (path.parent, _tree(path.resolve()))
        return tuple(dict.fromkeys(folders))

    async def run(self, job: Job, sandbox: Sandbox) -> Finish:
        """Work on the job until the harness ends by itself. Raises HarnessError when it crashed."""
        launch = returned(self.launch(job, sandbox), Launch, "launch()")
        while True:
            await sandbox.write(launch.files)
            result = await sandbox.exec(launch.argv, env=launch.env, cwd=sandbox.workspace)
            if result.limit:
                log = result.stderr.decode(errors="replace")[-LOG_CHARACTERS:]
                return Finish(exit_code=result.exit_code, log=log, gave_up=f"used {result.limit}")
            collected = {path: await sandbox.read(path) or b"" for path in launch.collect}
            finish = returned(self.finish(result, collected), Finish, "finish()")
            if job.reply is None or not self.converses or finish.gave_up or finish.failed:
                return finish
            if (text := await job.reply(finish.answer)) is None:
                return finish
            launch = self.launch_again(job, text, sandbox)

    def launch(self, job: Job, sandbox: Sandbox) -> Launch:
        """The command, its environment and its config files."""
        raise HarnessError(f"{type(self).__name__} defines neither launch() nor run()")

    def launch_again(self, job: Job, text: str, sandbox: Sandbox) -> Launch:
        """The command that goes on with the same conversation, `text` being the user's reply."""
        raise HarnessError(f"{type(self).__name__} can't go on with a conversation")

    def unfit(self, task: Task) -> str:
        """Why no model could do the task in this harness; empty when one could."""
        return ""

    def has_shell(self, surface: ToolSurface) -> bool:
        """Whether its agent can run commands and change files in the workspace."""
        return self.program is not None

    def finish(self, result: ExecResult, collected: Mapping[str, bytes]) -> Finish:
        """Read the ending: final answer, exit status, failure. Raises HarnessError for a crash."""
        return Finish(
            answer=result.stdout.decode(errors="replace").strip(),
            exit_code=result.exit_code,
            log=result.stderr.decode(errors="replace")[-LOG_CHARACTERS:],
        )

    @classmethod
    def classify(cls, headers: Mapping[str, str], body: JsonObject) -> tuple[CallKind, str]:
        """The kind of a model call and the id of the agent that made it, from headers and body."""
        return "main", ""

    def fingerprint(self) -> JsonObject:
        """Program, version and settings, for the manifest."""
        return {"program": self.program.name if self.program else "", "version": self.version}


def _tree(path: Path) -> Path:
    """The folder that a program needs. A script that npm installed loads packages from `node_modules`."""
    if path.suffix not in SCRIPTS:
        return path.parent
    trees = [parent for parent in path.parents if parent.name == "node_modules"]
    return trees[-1] if trees else path.parent
