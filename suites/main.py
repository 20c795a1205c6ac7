"""The main function that every suite ends in: check everything, run, report.

Whatever can be found wrong is found before the first attempt starts: one line, exit code 2.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from rollout.contract import check
from rollout.episode import Setup
from rollout.errors import UsageError, boundary, usable
from rollout.processes import cancel_on_signals
from rollout.runner import Runner, RunnerStopped
from rollout.store import EpisodeStore
from rollout.suite import Suite
from rollout.types import Episode, Outcome, Task
from suites.inspect_log import write_log
from suites.manifest import claim, complete
from suites.options import Options, parse, select
from suites.progress import count, display
from suites.rescore import rescore
from suites.result import Result, print_result, print_tasks, summarise_run
from suites.screen import say
from suites.setup import fitted, open_setup, unjudged

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
            result = await _run(suite, options, tasks, setup, folder, screen)
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


async def _run(
    suite: Suite,
    options: Options,
    tasks: Sequence[Task],
    setup: Setup,
    folder: Path,
    screen: Console,
) -> Result:
    """Run what is missing, then sum up what the store holds."""
    opened = EpisodeStore.open(folder) if options.resume else EpisodeStore.create(folder)
    with opened as store:
        if store.recovered:
            say(screen, store.recovered)
        manifest = claim(store, suite, options, tasks, setup)
        wanted = {(task.id, attempt) for task in tasks for attempt in range(options.attempts)}
        done: Counter[Outcome] = Counter(
            episode.outcome
            for key, episode in store.latest().items()
            if key in wanted and episode.outcome is not Outcome.INFRA_ERROR
        )
        _announce(suite, options, tasks, setup, folder, screen)
        if options.resume:
            say(screen, f"{done.total()} of {count(len(wanted), 'attempt')} done already")
        with display(screen, total=len(wanted), done=done, quiet=options.quiet) as observer:
            runner = Runner(
                setup,
                store=store,
                concurrency=options.concurrency,
                seed=options.seed,
                observer=observer,
            )
            async for group in runner.groups(tasks, options.attempts):
                manifest = complete(folder, manifest, store, group)
        latest = store.latest()
        episodes = [latest[key] for key in sorted(wanted & latest.keys())]
        result = _result(suite, options, tasks, setup, folder, episodes)
        note = write_log(folder / "inspect.eval", store, manifest, tasks, result)
        if note:
            say(screen, note)
    return result


def _result(
    suite: Suite,
    options: Options,
    tasks: Sequence[Task],
    setup: Setup,
    folder: Path,
    episodes: Sequence[Episode],
) -> Result:
    names = {
        "manifest": "manifest.json",
        "episodes": "episodes.jsonl",
        "traces": "traces.zst",
        "summary": "summary.json",
        "inspect": "inspect.eval",
    }
    result = summarise_run(
        suite=suite.name,
        harness=options.harness,
        model=setup.gateway.upstream.label or options.model,
        k=options.attempts,
        tasks=tasks,
        episodes=episodes,
        paths={what: str(folder / name) for what, name in names.items()},
        notes=suite.notes(),
    )
    summary = msgspec.json.format(msgspec.json.encode(result.as_json()), indent=2)
    path = folder / names["summary"]
    with usable(path):
        path.write_bytes(summary + b"\n")
    return result


def _report(result: Result, options: Options) -> None:
    out = Console()
    if options.json:
        sys.stdout.write(msgspec.json.encode(result.as_json()).decode() + "\n")
    else:
        print_result(out, result)


def _announce(
    suite: Suite,
    options: Options,
    tasks: Sequence[Task],
    setup: Setup,
    folder: Path,
    screen: Console,
) -> None:
    """What is about to run, and what the reader must not overlook."""
    harness = " ".join(filter(None, (options.harness, setup.harness.version)))
    lines = [
        f"{suite.name}: {count(len(tasks), 'task')} x {count(options.attempts, 'attempt')}, "
        f"{harness} with {setup.surface} tools, model {setup.gateway.upstream.label}, "
        f"sandbox {setup.sandboxes.name}, {options.concurrency} at once",
        f"run: {folder}",
    ]
    if setup.sandboxes.warning and setup.harness.program is not None:
        lines.append(f"warning: {setup.sandboxes.warning}")
    if setup.harness.note:
        lines.append(f"note: {setup.harness.note}")
    for line in lines:
        say(screen, line)


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
