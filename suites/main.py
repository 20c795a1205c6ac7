"""The main function that every suite ends in: check everything, run, report.

Whatever can be found wrong is found before the first attempt starts: one line, exit code 2.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from rollout.contract import check
from rollout.errors import UsageError, boundary
from rollout.processes import cancel_on_signals
from rollout.runner import RunnerStopped
from rollout.suite import Suite
from rollout.types import Outcome, Task
from suites.command.options import Options, parse, select
from suites.command.progress import count
from suites.command.rescore import rescore
from suites.command.result import Result, print_result, print_tasks
from suites.command.run import SuiteRun
from suites.command.screen import say
from suites.command.setup import fitted, open_setup, unjudged

__all__ = ["main"]

INCOMPLETE, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes beside 0."""


def main(suite: Suite, argv: Sequence[str] | None = None) -> None:
    """Run a suite from the command line; exits with 0, 1, 2 or 130 (see `--help`)."""
    # Progress and messages go to stderr, so that stdout holds the result alone.
    screen = Console(stderr=True)
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        check(suite, Suite)
        if arguments[:1] == ["rescore"]:
            sys.exit(asyncio.run(rescore(suite, arguments[1:], screen)))
        options = parse(suite, arguments)
        with boundary(UsageError, f"suite {suite.name}: tasks()"):
            tasks = select(suite.tasks(options.data), options.tasks)
        if options.listing:
            print_tasks(Console(), tasks if options.judge else unjudged(tasks))
            sys.exit(0)
        sys.exit(asyncio.run(_main(suite, options, tasks, screen)))
    except UsageError as error:
        say(screen, f"error: {error}", style="red")
        sys.exit(USAGE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


async def _main(suite: Suite, options: Options, tasks: Sequence[Task], screen: Console) -> int:
    folder = _folder(suite, options)
    cancel_on_signals()
    try:
        async with open_setup(suite, options, folder) as setup:
            tasks = fitted(suite, tasks, setup)
            result = await SuiteRun(suite, options, tasks, setup, folder, screen).run()
    except asyncio.CancelledError:
        say(
            screen,
            f"interrupted; go on with: {_resume_command(suite, options, folder)}",
            style="red",
        )
        return INTERRUPTED
    except RunnerStopped as error:
        say(screen, f"stopped: {error}", style="red")
        say(screen, f"when that is mended: {_resume_command(suite, options, folder)}", style="red")
        return INCOMPLETE
    _report(result, options)
    for line in _remedies(suite, options, folder, result):
        say(screen, line, style="red")
    nothing = result.overall.attempted and not result.overall.graded
    return INCOMPLETE if nothing else 0


def _report(result: Result, options: Options) -> None:
    out = Console()
    if options.json:
        sys.stdout.write(msgspec.json.encode(result.as_json()).decode() + "\n")
    else:
        print_result(out, result)


def _folder(suite: Suite, options: Options) -> Path:
    if options.out is not None:
        return options.out
    if options.resume:
        raise UsageError("--resume needs the run's folder: --out runs/NAME --resume")
    name = re.sub(r"[^\w.=]+", "-", f"{suite.name}-{options.harness}-{options.model}").strip("-")
    return Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _remedies(suite: Suite, options: Options, folder: Path, result: Result) -> Iterator[str]:
    """How the attempts that ended without a grade can have one."""
    if failed := result.overall.outcomes.get(Outcome.INFRA_ERROR):
        command = _resume_command(suite, options, folder)
        yield f"{count(failed, 'attempt')} ended in infra_error; to run again: {command}"
    if ungraded := result.overall.outcomes.get(Outcome.JUDGE_ERROR):
        command = shlex.join(["python", "-m", f"suites.{suite.name}", "rescore", str(folder)])
        yield f"{count(ungraded, 'attempt')} ended in judge_error; to grade again: {command}"


def _resume_command(suite: Suite, options: Options, folder: Path) -> str:
    given = [argument for argument in sys.argv[1:] if argument != "--resume"]
    if options.out is None:
        given += ["--out", str(folder)]
    return shlex.join(["python", "-m", f"suites.{suite.name}", *given, "--resume"])
