"""`python -m judges calibrate runs/NAME`: how far a judge can be trusted."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import Progress

from judges.agreement import Case, measure
from judges.calibration import Calibration, Choice, choose
from judges.options import (
    add_judge_arguments,
    add_protocol_arguments,
    make_protocol,
    note,
    open_judge_again,
)
from judges.report import Report, print_report
from rollout.errors import UsageError
from rollout.judge import Judge
from rollout.manifest import Manifest
from rollout.options import Parser, positive
from rollout.processes import cancel_on_signals
from rollout.protocol import Protocol
from rollout.recorded import recorded_suite
from rollout.store import EpisodeStore
from rollout.types import Task

__all__ = ["main"]

NOTHING, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes beside 0."""

PROTOCOL = "rubric"
"""Where neither the user nor the suite names one: it shows the judge all that there is."""

DESCRIPTION = """\
Measures a judge against the truth: the attempts of a run that a verifier graded from the world they left
behind are shown to the judge, and its verdicts are compared. Nothing is run and nothing of the run is
changed. The judge's replies are kept (--judge-cache), so a calibration that was stopped goes on where it
was, and one that is repeated costs nothing.
"""

CODES = "exit codes: 0 measured, 1 no verdict at all, 2 wrong usage, 130 interrupted"


def main(argv: Sequence[str] | None = None) -> None:
    """Exits with 0, 1 when no attempt got a verdict, 2 for wrong usage, or 130."""
    screen = Console(stderr=True)
    try:
        sys.exit(asyncio.run(_main(_parser().parse_args(argv), screen)))
    except UsageError as error:
        screen.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(USAGE)


async def _main(chosen: argparse.Namespace, screen: Console) -> int:
    cancel_on_signals()
    try:
        return await _calibrate(chosen, screen)
    except asyncio.CancelledError:
        screen.print(
            "interrupted; the replies so far are kept: the same command goes on from there",
            soft_wrap=True,
        )
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m judges")
    calibrate = parser.add_subparsers(required=True, metavar="calibrate").add_parser(
        "calibrate",
        help="measure a judge against the verifiers' truth on a recorded run",
        description=DESCRIPTION,
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    calibrate.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    judging = calibrate.add_argument_group("who judges (default: the judge of the run)")
    add_judge_arguments(judging)
    add_protocol_arguments(judging, "", f"the suite's, else {PROTOCOL}")
    how = calibrate.add_argument_group("how")
    how.add_argument(
        "--data", type=Path, metavar="PATH", help="the tasks, where they are elsewhere by now"
    )
    how.add_argument(
        "--suite", default="", metavar="MODULE", help="the run's suite, where it is a plug-in"
    )
    how.add_argument(
        "--concurrency",
        type=positive(int),
        default=4,
        metavar="N",
        help="attempts under judgement at once (default: 4)",
    )
    how.add_argument("--json", action="store_true", help="print the result as JSON")
    how.add_argument("--quiet", action="store_true", help="no progress display")
    return parser


async def _calibrate(chosen: argparse.Namespace, screen: Console) -> int:
    manifest = Manifest.read(chosen.run)
    suite, recorded = recorded_suite(manifest, chosen.data, chosen.suite)
    tasks = {task.id: task for task in suite.tasks(recorded.data)}
    protocol = _protocol(chosen, recorded)
    opened = _opened_judge(manifest, chosen)
    environment = suite.environment()
    try:
        with EpisodeStore.read(chosen.run) as store:
            choice = _chosen(store, tasks)
            async with opened as (spec, judge):
                asking = Calibration(environment, protocol, judge, chosen.concurrency)
                cases = await _watched(asking, store, tasks, choice, screen, chosen.quiet)
                report = Report(
                    run=str(chosen.run),
                    suite=suite.name,
                    judge={"spec": spec, **judge.fingerprint()},
                    protocol=protocol.fingerprint(),
                    agreement=measure(cases),
                    cases=tuple(sorted(cases, key=lambda case: case.episode)),
                    left_out=choice.left_out,
                    spent=judge.spent,
                    notes=(note(protocol), *_changed(manifest, tasks, choice)),
                )
    finally:
        await environment.close()
    if chosen.json:
        sys.stdout.write(msgspec.json.encode(report.as_json()).decode() + "\n")
    else:
        print_report(Console(), report)
    return 0 if report.agreement.judged else NOTHING


def _protocol(chosen: argparse.Namespace, recorded: argparse.Namespace) -> Protocol:
    """The one that is named, else the one that the suite's options name."""
    if chosen.protocol:
        return make_protocol(chosen.protocol, chosen.judge_prompts)
    spec = getattr(recorded, "protocol", "") or PROTOCOL
    return make_protocol(spec, chosen.judge_prompts or getattr(recorded, "judge_prompts", None))


@asynccontextmanager
async def _opened_judge(
    manifest: Manifest, chosen: argparse.Namespace
) -> AsyncIterator[tuple[str, Judge]]:
    """The judge and its spec. Raises UsageError where neither the user nor the run names one."""
    async with open_judge_again(chosen, manifest.judge, chosen.run) as (spec, judge):
        if judge is None:
            raise UsageError(
                f"{chosen.run} was run without a judge: name one with --judge openai:NAME"
            )
        yield spec, judge


def _chosen(store: EpisodeStore, tasks: Mapping[str, Task]) -> Choice:
    choice = choose(store, tasks)
    if not choice.episodes:
        why = ", ".join(f"{n} {reason}" for reason, n in choice.left_out.items()) or "it is empty"
        raise UsageError(f"{store.folder}: no attempt was graded by a verifier ({why})")
    return choice


def _changed(manifest: Manifest, tasks: Mapping[str, Task], choice: Choice) -> Sequence[str]:
    """A warning where tasks are no longer what the run had."""
    judged = {episode.task_id for episode in choice.episodes}
    other = sorted(t for t in judged if manifest.tasks.get(t) != tasks[t].fingerprint)
    if not other:
        return ()
    return (f"{len(other)} tasks are not as they were in the run: {', '.join(other[:5])}",)


async def _watched(
    asking: Calibration,
    store: EpisodeStore,
    tasks: Mapping[str, Task],
    choice: Choice,
    screen: Console,
    quiet: bool,
) -> list[Case]:
    """The cases, with a bar on a terminal and a line for each elsewhere."""
    cases: list[Case] = []
    total = len(choice.episodes)
    live = screen.is_terminal and not quiet
    with Progress(console=screen, transient=True, disable=not live) as progress:
        bar = progress.add_task("judging", total=total)
        async for case in asking.cases(store, tasks, choice):
            cases.append(case)
            progress.advance(bar)
            if not live and not quiet:
                said = {True: "success", False: "failure", None: "no verdict"}[case.judge]
                line = f"[{len(cases)}/{total}] {case.episode} {said}"
                screen.print(line, markup=False, highlight=False, soft_wrap=True)
    return cases


if __name__ == "__main__":
    main()
