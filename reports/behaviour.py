"""What agents do, measured from records: one small function a measure, whose docstring is its definition.

Each is computed from one attempt's model calls and tool calls and, where it compares, from the task's
reference solution.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import msgspec

from reports.functions import FunctionCall
from reports.table import Kind
from rollout.types import ToolCall

__all__ = ["MEASURES", "Attempt", "Measure"]

READS = frozenset(
    {
        *(
            "browse",
            "check",
            "count",
            "describe",
            "extract",
            "fetch",
            "find",
            "get",
            "history",
            "list",
        ),
        *("lookup", "query", "read", "search", "show", "status", "view"),
    }
)
"""Words in the name of a tool that only looks; any other tool is taken to write."""
SHORTEST_VALUE = 3
"""Characters of a written value that is looked for in what is read later."""

Better = Literal["more", "less", ""]


@dataclass(frozen=True)
class Attempt:
    """What one graded attempt recorded, as the measures look at it."""

    passed: bool
    turns: int
    """Answered model calls of the agent and its sub-agents."""
    tokens: int
    functions: Sequence[FunctionCall]
    """What the model called, the harness's own functions and the shell included."""
    tools: Sequence[ToolCall]
    """What the task's tools were asked, by whichever way."""
    steps: Sequence[str] = ()
    """Tool names of the reference solution; empty where there is none."""
    services: Mapping[str, str] = field(default_factory=dict)
    """Tool -> the service that it belongs to."""

    def service(self, tool: str) -> str:
        return self.services.get(tool) or tool.partition("_")[0]

    @cached_property
    def done(self) -> list[ToolCall]:
        """The tool calls that succeeded."""
        return [call for call in self.tools if call.status < 400]


def shell_share(attempt: Attempt) -> float:
    """Share of the model's function calls that run a command in the harness's generic shell."""
    return _share(call.shell for call in attempt.functions)


def shell_share_passed(attempt: Attempt) -> float:
    """Share of function calls that run a command in the generic shell, in passed attempts only."""
    return shell_share(attempt) if attempt.passed else math.nan


def self_verification(attempt: Attempt) -> float:
    """Share of successful writes that the agent read back: a later successful call of a reading tool of
    the same service names, in its arguments or its reply, a value that was written. A tool reads when its
    name says so (get, list, search, read ...), else it writes. Attempts without a write have no value."""
    done = attempt.done
    return _share(
        any(_reads_back(attempt, write, later) for later in done[n + 1 :])
        for n, write in enumerate(done)
        if not _is_read(write.name)
    )


def tool_coverage(attempt: Attempt) -> float:
    """Of the services that the reference solution uses, the share that the agent reached with at least
    one successful call."""
    needed = {attempt.service(tool) for tool in attempt.steps}
    reached = {attempt.service(call.name) for call in attempt.done}
    return len(needed & reached) / len(needed) if needed else math.nan


def plan_completion(attempt: Attempt) -> float:
    """Of the reference solution's tool calls, the share that the agent made too, by the tools' names and
    in any order, each successful call counting once. Only tasks whose solution has several steps."""
    if len(attempt.steps) < 2:
        return math.nan
    wanted, made = Counter(attempt.steps), Counter(call.name for call in attempt.done)
    return (wanted & made).total() / len(attempt.steps)


def step_efficiency(attempt: Attempt) -> float:
    """Tool calls of the reference solution over those that the agent made, at most 1. Only passed
    attempts: doing too little is no efficiency."""
    if not (attempt.passed and attempt.steps and attempt.tools):
        return math.nan
    return min(1.0, len(attempt.steps) / len(attempt.tools))


def format_robustness(attempt: Attempt) -> float:
    """Share of the model's function calls that can be carried out: the arguments are a JSON object (or
    the free text that the tool takes), and the function is among those that were offered."""
    return _share(call.parses and call.exists for call in attempt.functions)


def failed_calls(attempt: Attempt) -> float:
    """Share of the calls of the task's tools that were answered with an error (status 400 and above)."""
    return _share(call.status >= 400 for call in attempt.tools)


def error_recovery(attempt: Attempt) -> float:
    """Of the attempts with a failed call (an error of a task's tool, arguments that don't parse, a
    function that does not exist), the share that went on and passed."""
    failed = any(call.status >= 400 for call in attempt.tools) or any(
        not (call.parses and call.exists) for call in attempt.functions
    )
    return float(attempt.passed) if failed else math.nan


def useless_loops(attempt: Attempt) -> float:
    """Share of the calls of the task's tools that repeat an earlier one (same tool, same arguments, same
    reply) though nothing was written in between."""
    known: set[bytes] = set()
    repeats = []
    for call in attempt.tools:
        asked = msgspec.json.encode(
            [call.name, call.arguments, call.status, call.reply], order="deterministic"
        )
        repeats.append(asked in known)
        if call.status < 400 and not _is_read(call.name) and asked not in known:
            known.clear()
        known.add(asked)
    return _share(repeats)


def length(attempt: Attempt) -> float:
    """Answered model calls of the agent and its sub-agents; a request sent again counts once."""
    return float(attempt.turns)


def tool_calls(attempt: Attempt) -> float:
    """Calls of the task's tools that were dispatched, failed ones included."""
    return float(len(attempt.tools))


def tokens(attempt: Attempt) -> float:
    """Prompt and completion tokens of all model calls, as the server counted them."""
    return float(attempt.tokens)


@dataclass(frozen=True)
class Measure:
    """One number an attempt, and what it means."""

    name: str
    label: str
    kind: Kind
    better: Better
    """Which direction is good, where one is."""
    example: Literal["highest", "lowest"]
    """Which attempt shows best what is meant."""
    definition: str
    function: Callable[[Attempt], float] | None = None
    """None for what a judge says."""

    @property
    def share(self) -> bool:
        return self.kind == "share"


def _measure(
    function: Callable[[Attempt], float],
    label: str,
    better: Better,
    example: Literal["highest", "lowest"],
    kind: Kind = "share",
) -> Measure:
    definition = " ".join((function.__doc__ or "").split())
    return Measure(function.__name__, label, kind, better, example, definition, function)


MEASURES = (
    _measure(self_verification, "self-verification", "more", "highest"),
    _measure(tool_coverage, "tool coverage", "more", "lowest"),
    _measure(plan_completion, "plan completion", "more", "lowest"),
    _measure(step_efficiency, "step efficiency", "more", "lowest"),
    _measure(format_robustness, "format robustness", "more", "lowest"),
    _measure(error_recovery, "error recovery", "more", "highest"),
    _measure(failed_calls, "failed calls", "less", "highest"),
    _measure(useless_loops, "useless loops", "less", "highest"),
    _measure(shell_share, "generic shell", "", "highest"),
    _measure(shell_share_passed, "generic shell, passed", "", "highest"),
    _measure(length, "episode length", "", "highest", "number"),
    _measure(tool_calls, "tool calls", "", "highest", "number"),
    _measure(tokens, "tokens", "less", "highest", "tokens"),
)
"""The computed measures, in the order in which they are shown."""


def _share(flags: Any) -> float:
    known = list(flags)
    return sum(known) / len(known) if known else math.nan


def _is_read(tool: str) -> bool:
    return not READS.isdisjoint(re.split(r"[^a-z]+", tool.lower()))


def _reads_back(attempt: Attempt, write: ToolCall, later: ToolCall) -> bool:
    if not _is_read(later.name) or attempt.service(later.name) != attempt.service(write.name):
        return False
    seen = "\n".join((*_leaves(later.arguments), *_leaves(later.reply)))
    return any(value in seen for value in _written(write))


def _written(write: ToolCall) -> Iterator[str]:
    """The values of a write, and the id of what it made."""
    yield from (value for value in _leaves(write.arguments) if len(value) >= SHORTEST_VALUE)
    if isinstance(write.reply, dict):
        yield from (str(v) for key, v in write.reply.items() if re.search(r"(^|_)id$", key) and v)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
