"""The files of a task as pydantic reads them: claw-eval's task.yaml, our additions, and solutions.yaml.

claw-eval's schema is src/claw_eval/models/task.py of github.com/claw-eval/claw-eval. What it never reads
itself (`scoring_components`, `safety_checks`, `port`, `health_check` ...) is accepted and ignored, and so
are unknown keys, as there; where verify.py grades, one that is nearly a known one is a mistake. Strict
are `clock`, `faults`, and all of solutions.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from environments.claw.clock import parse_time
from environments.claw.faults import Fault, FaultKind
from rollout.types import JsonObject, Solution, Step

__all__ = [
    "EndpointEntry",
    "Moment",
    "ServiceEntry",
    "SolutionsFile",
    "Strict",
    "TaskFile",
    "UserAgent",
    "explain",
    "misspelt",
]


class Strict(BaseModel):
    """Base of what is ours: an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid")


class Lenient(BaseModel):
    """Base of what is claw-eval's: unknown keys are kept, and mean nothing."""

    model_config = ConfigDict(extra="allow")


class PromptEntry(Lenient):
    text: str
    language: str = "zh"
    attachments: list[str] = []


class ToolEntry(Lenient):
    name: str
    description: str = ""
    input_schema: JsonObject = {"type": "object", "properties": {}}


class EndpointEntry(Lenient):
    tool_name: str
    url: str
    method: str = "POST"


class ServiceEntry(Lenient):
    name: str
    command: str = ""
    env: dict[str, str] = {}


class Limits(Lenient):
    timeout_seconds: Annotated[float, Field(gt=0)] = 300.0
    max_turns: Annotated[int, Field(ge=0)] = 20
    fixtures: list[str] = []
    env_snapshot_timeout: float = 10.0


class UserAgent(Lenient):
    enabled: bool = False
    persona: str = ""
    max_rounds: int = 3
    system_prompt_suffix: str = ""


class FaultEntry(Strict):
    kind: FaultKind
    tool: str = ""
    service: str = ""
    times: int | None = Field(None, ge=1)
    rate: float | None = Field(None, ge=0, le=1)
    after: int = Field(0, ge=0)
    seconds: float = Field(2.0, ge=0)

    @model_validator(mode="after")
    def _one_target(self) -> FaultEntry:
        if bool(self.tool) == bool(self.service):
            raise ValueError('name either a tool or a service; "*" means all of them')
        return self

    def record(self) -> Fault:
        """Without `times` and `rate` a fault hits once; with a rate alone it has no limit."""
        unlimited = self.times is None and self.rate is not None
        return Fault(
            kind=self.kind,
            tool=self.tool,
            service=self.service,
            times=0 if unlimited else self.times or 1,
            rate=1.0 if self.rate is None else self.rate,
            after=self.after,
            seconds=self.seconds,
        )


def _time(value: Any) -> str:
    """YAML makes dates of some texts and leaves others as they are."""
    return parse_time(value.isoformat() if isinstance(value, date) else str(value)).isoformat()


Moment = Annotated[str, BeforeValidator(_time)]
"""A time in ISO 8601."""


class TaskFile(Lenient):
    """task.yaml."""

    task_id: str
    task_name: str = ""
    category: str = ""
    difficulty: str = ""
    tags: list[str] = []
    prompt: PromptEntry
    tools: list[ToolEntry] = []
    tool_endpoints: list[EndpointEntry] = []
    services: list[ServiceEntry] = []
    environment: Limits = Limits()
    sandbox_files: list[str] = []
    sandbox_grader_files: list[str] = []
    local_grader_files: list[str] = []
    env_snapshot_commands: list[str] = []
    env_snapshot_files: list[str] = []
    user_agent: UserAgent = UserAgent()
    judge_rubric: str = ""
    clock: Moment = ""
    faults: list[FaultEntry] = []

    def workspace_files(self) -> Iterator[tuple[str, str]]:
        """Each file that goes into the workspace, after the field that names it."""
        if self.sandbox_files:
            yield from _numbered("sandbox_files", self.sandbox_files)
        else:
            yield from _numbered("environment.fixtures", self.environment.fixtures)
        yield from _numbered("prompt.attachments", self.prompt.attachments)

    def grader_files(self) -> Iterator[tuple[str, str]]:
        """Each file that goes into the workspace once the agent is done, after its field."""
        yield from _numbered("sandbox_grader_files", self.sandbox_grader_files)


def _numbered(field: str, names: list[str]) -> Iterator[tuple[str, str]]:
    for n, name in enumerate(names):
        yield f"{field}[{n}]", name


class StepEntry(Strict):
    call: str
    arguments: JsonObject = {}
    retry: int = Field(0, ge=0)
    expect: JsonObject = {}
    back: int = Field(0, ge=0)

    def record(self) -> Step:
        return Step(**self.model_dump())


class ReferenceEntry(Strict):
    steps: list[StepEntry] = []
    answer: str = ""

    def record(self, name: str) -> Solution:
        steps = tuple(step.record() for step in self.steps)
        return Solution(name=name, steps=steps, answer=self.answer)


class WrongEntry(ReferenceEntry):
    name: str


class SolutionsFile(Strict):
    """solutions.yaml: the scripted ways through a task."""

    reference: ReferenceEntry
    wrong: list[WrongEntry] = []


def misspelt(entry: BaseModel, path: str = "") -> Iterator[str]:
    """Keys without a meaning that are nearly one with a meaning, here and below."""
    fields = type(entry).model_fields
    for key in entry.model_extra or ():
        if close := get_close_matches(key, fields, n=1, cutoff=0.8):
            yield f"{path}{key}: unknown key; did you mean {close[0]}?"
    for name in fields:
        value = getattr(entry, name)
        parts = enumerate(value) if isinstance(value, list) else [("", value)]
        for n, part in parts:
            if isinstance(part, BaseModel):
                yield from misspelt(part, f"{path}{name}[{n}]." if n != "" else f"{path}{name}.")


def explain(error: ValidationError) -> list[str]:
    """One `field.path: what is wrong; remedy` for each thing that pydantic found."""
    return [f"{_field(entry['loc'])}: {_what(entry)}" for entry in error.errors()]


def _field(loc: tuple[int | str, ...]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return path.lstrip(".") or "(the whole file)"


def _what(entry: Any) -> str:
    if entry["type"] == "missing":
        return "missing; add it"
    if entry["type"] == "extra_forbidden":
        return "unknown key; correct or remove it"
    if entry["type"] == "model_type":
        return f"is {entry['input']!r:.60}; it should be a mapping (key: value)"
    if entry["type"] == "value_error":
        return str(entry["ctx"]["error"])
    remedy = entry["msg"].removeprefix("Input ")
    return f"is {entry['input']!r:.60}; it {remedy}"
