"""The command line that every suite shares."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TypedDict

from judges.options import add_judge_arguments
from rollout.contract import checked_tasks
from rollout.errors import UsageError
from rollout.options import Parser, bounded, positive
from rollout.plugins import available
from rollout.suite import Suite
from rollout.types import JsonObject, Task

__all__ = ["Forced", "Options", "parse", "select"]

MODELS = """\
models:
  reference                 plays each task's reference solution; no LLM, no key
  noisy-reference:p=0.8     goes wrong in an attempt with probability 1 - p
  openai:NAME               any OpenAI-compatible server (--base-url; key in OPENAI_API_KEY)
  vllm:PATH                 starts a vLLM server for a local model
  train.policy:PATH         a small local checkpoint, in this process (docs/training.md)

judging again:
  rescore runs/NAME         grades a run's recorded attempts again, runs nothing (rescore --help)

exit codes: 0 the run is complete, 1 it had to stop early or nothing could be graded,
2 wrong usage, 130 interrupted
"""


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    harness: str
    model: str
    base_url: str
    attempts: int
    tasks: str
    concurrency: int
    sandbox: str
    tools: str
    judge: str
    judge_base_url: str
    judge_cache: Path | None
    judge_temperature: float | None
    data: Path | None
    out: Path | None
    resume: bool
    seed: int
    timeout: float | None
    harness_program: str
    temperature: float | None
    top_p: float | None
    max_tokens: int
    listing: bool
    json: bool
    quiet: bool

    @property
    def sampling(self) -> JsonObject:
        """Sampling parameters forced on every model call, in chat terms."""
        asked = {"temperature": self.temperature, "top_p": self.top_p}
        return {name: value for name, value in asked.items() if value is not None}


class Forced(TypedDict, total=False):
    """The options that a program sets when it runs a suite in place of a user; see `Options`."""

    harness: str
    tools: str
    model: str
    base_url: str
    sandbox: str
    temperature: float
    top_p: float
    max_tokens: int


def parse(suite: Suite, argv: Sequence[str] | None, forced: Forced | None = None) -> Options:
    """Read the command line; what is `forced` wins over that. Raises UsageError."""
    arguments = _parser(suite).parse_args(argv)
    vars(arguments).update(forced or {})
    suite.configure(arguments)
    parsed = vars(arguments)
    return Options(**{field.name: parsed[field.name] for field in fields(Options)})


def _parser(suite: Suite) -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"python -m suites.{suite.name}",
        description=suite.title,
        epilog=MODELS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _what(parser.add_argument_group("what is run"), suite)
    suite.add_arguments(parser.add_argument_group(f"of {suite.name}"))
    _how(parser.add_argument_group("how it is run"))
    _sampling(parser.add_argument_group("sampling, forced on every model call"))
    return parser


def _what(group: argparse._ArgumentGroup, suite: Suite) -> None:
    group.add_argument(
        "--harness",
        default=suite.harness,
        metavar="NAME[:PRESET]",
        help=f"{', '.join(available('harness_wrappers'))} (default: {suite.harness})",
    )
    group.add_argument(
        "--model", default="reference", metavar="SPEC", help="see below (default: reference)"
    )
    group.add_argument(
        "--base-url",
        default="",
        metavar="URL",
        help="address of the model server (default: OpenAI's)",
    )
    group.add_argument(
        "--tasks",
        default="all",
        metavar="WHICH",
        help="all | N (the first N) | id,id | tag:NAME (default: all)",
    )
    group.add_argument(
        "--data", type=Path, metavar="PATH", help="tasks of your own (default: the built-in ones)"
    )
    group.add_argument(
        "--attempts",
        type=positive(int),
        default=suite.attempts,
        metavar="K",
        help=f"attempts per task, the k of pass^k (default: {suite.attempts})",
    )
    group.add_argument(
        "--tools",
        default="",
        choices=["native", "mcp", "skill"],
        help="how the harness gets the task's tools (default: the harness's first)",
    )
    add_judge_arguments(group)
    group.add_argument(
        "--list", dest="listing", action="store_true", help="list the tasks and exit"
    )


def _how(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--concurrency",
        type=positive(int),
        default=max(2, os.cpu_count() or 2),
        metavar="N",
        help="attempts under way at once (default: the number of CPU cores)",
    )
    group.add_argument(
        "--sandbox",
        default="auto",
        metavar="KIND",
        help="auto | local (isolates nothing) | bubblewrap | docker (default: auto)",
    )
    group.add_argument(
        "--harness-program", default="", metavar="PATH", help="the harness's executable"
    )
    group.add_argument(
        "--timeout",
        type=positive(float),
        metavar="S",
        help="wall-clock limit of an attempt, seconds (default: each task's own)",
    )
    group.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the run (default: 0)"
    )
    group.add_argument(
        "--out", type=Path, metavar="DIR", help="where the run is kept (default: runs/...)"
    )
    group.add_argument(
        "--resume", action="store_true", help="go on with the run in --out; nothing is run twice"
    )
    group.add_argument("--json", action="store_true", help="print the result as JSON")
    group.add_argument("--quiet", action="store_true", help="no progress display")


def _sampling(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--temperature", type=bounded(float, 0), metavar="T")
    group.add_argument("--top-p", type=bounded(float, 0, 1), metavar="P")
    group.add_argument(
        "--max-tokens",
        type=positive(int),
        default=8192,
        metavar="N",
        help="tokens of one reply at most (default: 8192)",
    )


def select(tasks: Sequence[Task], which: str) -> list[Task]:
    """The tasks that `--tasks` names. Raises UsageError when it names none, or a task is malformed."""
    tasks = checked_tasks(tasks)
    if which == "all":
        return tasks
    if which.isdigit():
        if not int(which):
            raise UsageError("--tasks 0: name at least one task")
        return list(tasks[: int(which)])
    if which.startswith("tag:"):
        tag = which.removeprefix("tag:")
        tagged = [task for task in tasks if tag in (*task.tags, task.category, task.language)]
        if not tagged:
            known = sorted({tag for task in tasks for tag in (*task.tags, task.category)} - {""})
            raise UsageError(f"--tasks {which}: no task has that tag; tags: {', '.join(known)}")
        return tagged
    found = [_find(tasks, name.strip()) for name in which.split(",") if name.strip()]
    if not found:
        raise UsageError(f"--tasks {which!r}: name at least one task; --list shows them")
    return list({task.id: task for task in found}.values())


def _find(tasks: Sequence[Task], name: str) -> Task:
    """By full id, or by the part before the first underscore where that is unambiguous."""
    exact = [task for task in tasks if task.id == name]
    short = [task for task in tasks if task.id.partition("_")[0] == name]
    found = exact or short
    if len(found) != 1:
        raise UsageError(f"--tasks: no task {name!r}; {_remedy(tasks, name)}")
    return found[0]


def _remedy(tasks: Sequence[Task], name: str) -> str:
    """What may have been meant: a tag, the task of a like name, else the list."""
    if any(name in (*task.tags, task.category, task.language) for task in tasks):
        return f"did you mean tag:{name}?"
    ids = [task.id for task in tasks]
    like = [each for each in ids if each.casefold().startswith(name.casefold())]
    close = like if len(like) == 1 else get_close_matches(name, ids, n=1, cutoff=0.8)
    return f"did you mean {close[0]}?" if close else "--list shows them"
