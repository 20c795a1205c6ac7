"""The records that everything else is about. All frozen, all JSON (and MessagePack) in and out.

A `Task` is attempted n times, which makes a `Group` of `Episode`s. An episode is light: what happened,
how it was graded, what it cost. Its `Trace` is heavy: every model call, every tool call, and the world
that was left behind. Grading and training read the trace, reports read the episodes.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec

__all__ = [
    "Call",
    "CallKind",
    "DialectName",
    "Episode",
    "Grade",
    "Group",
    "Image",
    "JsonObject",
    "Outcome",
    "Record",
    "Solution",
    "Step",
    "Task",
    "Timing",
    "ToolCall",
    "ToolReply",
    "ToolSpec",
    "ToolSurface",
    "Trace",
    "Usage",
]

JsonObject: TypeAlias = dict[str, Any]

DialectName = Literal["chat", "responses", "messages"]
"""The wire format of a model call: OpenAI chat-completions, OpenAI Responses, Anthropic Messages."""

CallKind = Literal["main", "subagent", "compaction", "side"]
"""Who made a model call: the agent itself, a sub-agent, a history summary, a title or the like."""

ToolSurface = Literal["native", "mcp", "skill"]
"""How a task's tools reach the harness: in-process functions, MCP, or SKILL.md folders with curl."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all records: immutable, keyword-only, compact on disk.

    Subclasses repeat `frozen=True, kw_only=True`: type checkers and msgspec want it said each time.
    """


class Outcome(StrEnum):
    """How an attempt ended. Only `passed` and `failed` are graded.

    `infra_error`: it never came to an end that could be graded, and is run again. `judge_error`: it did,
    but the judge or the grader failed; its records can be graded again.
    """

    PASSED = "passed"
    FAILED = "failed"
    BLOCKED = "blocked"
    INFRA_ERROR = "infra_error"
    JUDGE_ERROR = "judge_error"
    SKIPPED = "skipped"

    @property
    def graded(self) -> bool:
        """Whether the attempt counts in pass@k and pass^k."""
        return self in (Outcome.PASSED, Outcome.FAILED)


class ToolSpec(Record, frozen=True, kw_only=True):
    """One tool of a task, exactly as the model is shown it."""

    name: str
    description: str = ""
    input_schema: JsonObject = msgspec.field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    group: str = ""
    """The service that it belongs to: one SKILL.md folder per group."""


class Step(Record, frozen=True, kw_only=True):
    """One tool call of a scripted solution.

    Strings in `arguments` may hold `{{N.path}}`: the value at `path` (dots, integers index lists) in the
    reply to step N (counted from 1, its latest run). A string that is nothing but one reference takes
    the value with its type. `{{at:TARGET|FIELD}}`, alone in its string, is what `World.locate(TARGET)`
    says at that moment.
    """

    call: str
    """The bare tool name."""
    arguments: JsonObject = {}
    retry: int = 0
    """How often the same call is sent again while the reply is an error."""
    expect: JsonObject = {}
    """Paths in the reply and the values they must have; where one differs, go `back`."""
    back: int = 0
    """How many steps to go back when `expect` does not hold (at most 3 times)."""


class Solution(Record, frozen=True, kw_only=True):
    """A scripted way through a task: the reference solution, or a plausible wrong one."""

    name: str
    steps: tuple[Step, ...] = ()
    answer: str = ""
    """The final message; may hold the same references as a step's arguments."""


class Task(Record, frozen=True, kw_only=True):
    """What is to be done, and everything that the host needs to set it up. No behaviour.

    Environments subclass it to add typed fields of their own. Nothing here but the prompt, the tools and
    the files ever enters a sandbox.
    """

    id: str
    prompt: str
    tools: tuple[ToolSpec, ...] = ()
    files: dict[str, str] = {}
    """Path in the workspace -> path of the file on the host."""
    category: str = ""
    language: str = "en"
    difficulty: str = ""
    tags: tuple[str, ...] = ()
    timeout: float = 600.0
    """Wall-clock limit of one attempt, seconds."""
    max_turns: int = 0
    """Limit on the agent's own model calls; 0 is none."""
    reference: Solution | None = None
    wrong: tuple[Solution, ...] = ()
    skip: str = ""
    """Why the task can't run here; empty when it can."""
    judged: bool = False
    """Whether grading it asks a judge."""
    fingerprint: str = ""
    """SHA-256 over the task's data, graders included."""


class Usage(Record, frozen=True, kw_only=True):
    """Tokens, as the model server counted them."""

    prompt: int = 0
    completion: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt=self.prompt + other.prompt, completion=self.completion + other.completion
        )


class Call(Record, frozen=True, kw_only=True):
    """One model call: what the harness sent, what it was answered, and the tokens behind it."""

    index: int
    """Order of arrival within the episode, from 0."""
    dialect: DialectName
    kind: CallKind
    request: bytes
    """The JSON body as the harness sent it, half characters replaced (`rollout.jsontext`), and its
    pictures by their digests (`rollout.pictures`)."""
    reply: bytes
    """The whole JSON body that the harness was answered, in its own dialect (streamed or not)."""
    status: int = 200
    started: float = 0.0
    """Unix time of arrival, seconds."""
    seconds: float = 0.0
    """From arrival until the whole reply was there."""
    upstream_seconds: float = 0.0
    """The part of `seconds` spent waiting for the model server, retries included."""
    tries: int = 1
    """How often the upstream was asked."""
    model: str = ""
    """The model name as the server reported it."""
    agent: str = ""
    """Which agent of the harness asked (thread, sub-agent id), as far as its headers tell."""
    usage: Usage = Usage()
    finish: str = ""
    """Why it stopped: `stop`, `tool_calls`, `length`, `content_filter`; `context`: the prompt did not
    fit; `empty`: stopped without saying anything."""
    prompt_ids: bytes = b""
    """Token ids of the prompt as the server saw it, int32 little-endian; empty when it gave none."""
    response_ids: bytes = b""
    """Token ids that the policy sampled, int32 little-endian."""
    logprobs: bytes = b""
    """Log-probability of each sampled token, float32 little-endian."""
    weights: str = ""
    """Version of the policy's weights, where the server tells it."""


class Image(Record, frozen=True, kw_only=True):
    """A picture that a tool shows, a screenshot for instance."""

    data: bytes
    media_type: str = "image/png"

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes, hexadecimal: its name in `Trace.images`."""
        return hashlib.sha256(self.data).hexdigest()


class ToolReply(Record, frozen=True, kw_only=True):
    """What a tool answered: an HTTP-like status, a JSON body, and pictures where it shows some."""

    status: int = 200
    body: Any = None
    images: tuple[Image, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status < 400


class ToolCall(Record, frozen=True, kw_only=True):
    """One dispatched call of a task's tool, under its bare name whatever the surface."""

    index: int
    name: str
    arguments: Any
    """As the agent sent them; not validated away."""
    status: int
    reply: Any
    surface: ToolSurface
    started: float = 0.0
    seconds: float = 0.0
    images: tuple[str, ...] = ()
    """Digests of the pictures in the reply; `Trace.images` has them."""


class Trace(Record, frozen=True, kw_only=True):
    """All that an episode recorded. Grading, re-grading and training need nothing else."""

    calls: tuple[Call, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    answer: str = ""
    """The harness's final message to the user."""
    world: JsonObject = {}
    """The environment's snapshot of the world that was left behind."""
    log: str = ""
    """The tail of what the harness printed."""
    images: dict[str, Image] = {}
    """Every picture of the episode once, by its digest: those that tools showed and that calls sent."""


class Grade(Record, frozen=True, kw_only=True):
    """What the environment says of one attempt."""

    score: float
    """In [0, 1]."""
    passed: bool
    parts: dict[str, float] = {}
    """Named components, e.g. completion, safety, robustness."""
    notes: tuple[str, ...] = ()
    """Reasons, for people."""
    evidence: JsonObject = {}
    """Judge verdicts and raw replies, where a judge was asked."""


class Timing(Record, frozen=True, kw_only=True):
    """Where an episode's wall-clock time went, seconds. Concurrent waits count once."""

    total: float = 0.0
    setup: float = 0.0
    """Sandbox and world, before the harness started."""
    model: float = 0.0
    tools: float = 0.0
    grading: float = 0.0


class Episode(Record, frozen=True, kw_only=True):
    """One attempt at one task, finished: the unit that is stored, reported and trained on."""

    id: str
    """`<task id>#<attempt>` or `<task id>#<attempt>.<retry>`; unique within a run."""
    task_id: str
    attempt: int
    """The member of the group, from 0."""
    retry: int = 0
    """How many earlier tries of this attempt ended in an infrastructure error."""
    seed: int = 0
    outcome: Outcome
    cause: str = ""
    """The boundary that failed (model, harness, sandbox, environment, judge), or `policy` for a limit."""
    reason: str = ""
    """One line for people."""
    detail: str = ""
    """What helps to mend an error, of any length: a traceback."""
    grade: Grade | None = None
    calls: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    timing: Timing = Timing()
    started: float = 0.0
    """Unix time, seconds."""
    exit_code: int | None = None
    timed_out: float = 0.0
    """The wall-clock limit that it reached, seconds: whatever the grade, it failed."""
    limit: str = ""
    """The other limit that ended it, in words; its grade stands."""


class Group(Record, frozen=True, kw_only=True):
    """The attempts at one task that belong together: n for pass^k, G for GRPO."""

    task: Task
    episodes: tuple[Episode, ...]
