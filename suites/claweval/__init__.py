"""ClawEval: everyday work against mock services (mail, calendar, CRM, finance ...).

Without `--data` it runs the built-in tasks below `tasks/`; with it, a checkout of claw-eval, or any
folder of tasks in its schema (`DIR/tasks/*/task.yaml` or `DIR/*/task.yaml`).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from environments.claw import Claw
from environments.claw.checkout import commit_of, hash_of, server_script
from environments.claw.loader import Resources, load_tasks
from environments.claw.servers import ServerPool
from environments.claw.snapshot import WORKSPACE
from environments.claw.task import ClawTask, Split
from rollout.environment import Environment
from rollout.episode import Setup
from rollout.errors import UsageError
from rollout.suite import Suite
from rollout.types import JsonObject, Task
from suites.command.setup import make_upstream

__all__ = ["ClawEval"]

BUILT_IN = Path(__file__).parent / "tasks"

PYTHON = "ANYHARNESS_CLAW_EVAL_PYTHON"
"""Names the interpreter that runs a checkout's own servers and graders."""
SEARCH_KEY = "SERP_DEV_KEY"
"""Holds the key of claw-eval's web search."""


class ClawEval(Suite):
    """Office tasks in English and Chinese, graded from the world that the agent leaves."""

    name = "claweval"
    title = "ClawEval: everyday work against mock services (mail, calendar, CRM, finance ...)"

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        self.add_arguments(parser.add_argument_group())
        self._options = parser.parse_args([], argparse.Namespace(data=None, base_url=""))
        self._tasks = ""
        """Hash of all tasks in the folder, whatever is chosen of them."""

    def add_arguments(self, parser: argparse._ArgumentGroup) -> None:
        parser.add_argument(
            "--split",
            default="general",
            choices=[*get_args(Split), "all"],
            help="part of a claw-eval checkout (default: general)",
        )
        parser.add_argument(
            "--services",
            default="fast",
            choices=["fast", "original"],
            help=f"ours, in process, or the checkout's own servers, run by ${PYTHON} (default: fast)",
        )
        parser.add_argument(
            "--fidelity",
            default="as-released",
            choices=["as-released", "patched"],
            help="patched mends tasks of claw-eval that can't be done (default: as-released)",
        )
        parser.add_argument(
            "--error-rate",
            type=_probability,
            default=0.0,
            metavar="P",
            help="probability that a tool call fails or is slow, by seed (default: 0)",
        )
        parser.add_argument(
            "--user-model", default="", metavar="SPEC", help="plays the user of multi-turn tasks"
        )
        parser.add_argument(
            "--web-cache", type=Path, metavar="DIR", help="a recording of the web, to be replayed"
        )

    def configure(self, arguments: argparse.Namespace) -> None:
        chosen = arguments
        if chosen.services == "original":
            self._checkout(chosen.data)
        replays = chosen.web_cache is not None and not self._records(chosen)
        if replays and not chosen.web_cache.is_dir():
            raise UsageError(f"--web-cache {chosen.web_cache}: no such folder")
        for name, idle in (("fidelity", "as-released"), ("user_model", ""), ("web_cache", None)):
            if chosen.data is None and getattr(chosen, name) != idle:
                option = name.replace("_", "-")
                raise UsageError(f"--{option}: needs --data, the built-in tasks have no use for it")
        self._options = chosen

    def environment(self) -> Environment:
        chosen = self._options
        user = make_upstream(chosen.user_model, chosen.base_url) if chosen.user_model else None
        return Claw(self._servers(), error_rate=chosen.error_rate, user=user)

    def tasks(self, data: Path | None) -> Sequence[Task]:
        chosen = self._options
        records = self._records(chosen)
        resources = Resources(
            web_cache=chosen.web_cache.absolute() if chosen.web_cache and not records else None,
            live_web=records,
            user=bool(chosen.user_model),
        )
        found = load_tasks(_folder(data), resources, patched=chosen.fidelity == "patched")
        self._tasks = hash_of({task.id: task.fingerprint for task in found})
        tasks = [task for task in found if chosen.split in ("all", task.split)]
        if not tasks:
            splits = ", ".join(sorted({task.split for task in found}))
            where = data or "the built-in tasks"
            raise UsageError(
                f"--split {chosen.split}: no such task in {where}; they have: {splits}"
            )
        return tasks

    def unfit(self, task: Task, setup: Setup) -> str:
        task = cast(ClawTask, task)
        harness = type(setup.harness).__name__
        if task.user and not setup.harness.converses:
            return f"needs a harness that goes on when the user replies; {harness} does not"
        if task.needs_shell and not setup.harness.has_shell(setup.surface):
            return f"needs a shell, which {harness} has not with --tools {setup.surface}"
        if task.snapshot.needs_sandbox and not setup.sandboxes.isolates:
            return f"needs files in {WORKSPACE}: --sandbox bubblewrap or docker"
        if self._options.services == "original" and (task.clock or task.faults):
            return "needs a clock or faults of its own: --services fast"
        return ""

    def notes(self) -> Sequence[str]:
        chosen = self._options
        share = f"{chosen.error_rate:.0%} of the tool calls were made to fail or to be slow"
        errors = [share] if chosen.error_rate else []
        if chosen.data is None:
            return errors
        commit = commit_of(_folder(chosen.data).parent)
        source = f"commit {commit[:12]}, " if commit else ""
        return [
            f"tasks of {chosen.data} ({source}tasks {self._tasks[:12]}), "
            f"{chosen.fidelity}, split {chosen.split}, {chosen.services} services",
            *errors,
        ]

    def fingerprint(self, data: Path | None) -> JsonObject:
        chosen = self._options
        shared: JsonObject = {"data": "built-in" if data is None else str(data)}
        if data is None:
            return shared
        return shared | {
            "commit": commit_of(_folder(data).parent),
            "tasks": self._tasks,
            "split": chosen.split,
            "fidelity": chosen.fidelity,
            "services": chosen.services,
            "web": self._web(),
        }

    def _web(self) -> str:
        if self._records(self._options):
            return "live"
        return f"recorded in {self._options.web_cache}" if self._options.web_cache else "none"

    def _servers(self) -> ServerPool | None:
        chosen = self._options
        if chosen.services == "fast":
            return None
        settings = {"CACHE_TTL": "87600"}
        if chosen.web_cache is not None:
            settings["WEB_REAL_CACHE_DIR"] = str(chosen.web_cache.absolute())
        python = os.environ.get(PYTHON) or sys.executable
        return ServerPool(self._checkout(chosen.data), python, settings)

    def _checkout(self, data: Path | None) -> Path:
        """The checkout that holds the original servers. Raises UsageError."""
        if data is not None:
            checkout = _folder(data).absolute().parent
            if server_script(checkout, "gmail").is_file():
                return checkout
        given = "" if data is None else f"; {data} has no mock_services/"
        raise UsageError(f"--services original needs --data with a checkout of claw-eval{given}")

    @staticmethod
    def _records(chosen: argparse.Namespace) -> bool:
        """Whether the original web service searches the real web (and keeps what it finds)."""
        return chosen.services == "original" and bool(os.environ.get(SEARCH_KEY))


def _folder(data: Path | None) -> Path:
    """The folder that holds the task folders."""
    folder = data or BUILT_IN
    nested = folder / "tasks"
    return nested if nested.is_dir() else folder


def _probability(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1, not {text}")
    return value
