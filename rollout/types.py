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
    """How an attempt ended. Only `passed` and `failed` are graded, and count in the metrics.

    - `blocked`: the outside world refused the agent, with a captcha for instance.
    - `infra_error`: something broke before there was anything to grade; the attempt is run again.
    - `judge_error`: it ended well, but its judge or grader failed; its records are graded again.
    - `skipped`: the task can't be run here, and was not tried.
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

    Strings in `arguments` may refer to earlier replies: `{{2.items.0.id}}` is `["items"][0]["id"]` of the
    reply to step 2 (counted from 1; its latest run, where it ran more than once). Within a longer string
    the value becomes text; alone in its string it keeps its type. `{{at:TARGET|FIELD}}`, always alone in
    its string, is FIELD of what `World.locate(TARGET)` returns when the step is played.
    """

    call: str
    """The bare tool name."""
    arguments: JsonObject = {}
    retry: int = 0
    """How often the same call is sent again while the reply is an error."""
    expect: JsonObject = {}
    """Path in the reply -> the value that must be there; where one differs, the script goes `back`."""
    back: int = 0
    """How many steps the script goes back then; it does so 3 times at most."""


class Solution(Record, frozen=True, kw_only=True):
    """A scripted way through a task: the reference solution, or a plausible wrong one."""

    name: str
    steps: tuple[Step, ...] = ()
    answer: str = ""
    """The final message; may hold the same references as a step's arguments."""


class Task(Record, frozen=True, kw_only=True):
    """What is to be done, and the data that its world is made from.

    Environments subclass it to add typed fields of their own. Of all this only the prompt, the tools and
    the files ever enter a sandbox.
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
    """Why the task can't be run here; empty when it can."""
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
    """The part of `seconds` that was spent waiting for the model server, retries included."""
    tries: int = 1
    """How often the upstream was asked."""
    model: str = ""
    """The model name as the server reported it."""
    agent: str = ""
    """The agent within the harness that asked (a thread's or sub-agent's id), where its headers tell."""
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
    """As the agent sent them, also where they break the tool's schema."""
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
    """Where an episode's wall-clock time went, seconds. Waits that overlap are counted once."""

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
    """Which attempt of its group this is, from 0."""
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
    """The wall-clock limit, seconds, where it ran into that; else 0. It has failed then, whatever its
    grade says of the world that it left."""
    limit: str = ""
    """Any other limit that ended it (turns, memory), in words; else empty. Its grade stands."""


class Group(Record, frozen=True, kw_only=True):
    """The attempts at one task that are looked at together: the k of pass^k, the group of GRPO."""

    task: Task
    episodes: tuple[Episode, ...]
