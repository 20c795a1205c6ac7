"""`rescore runs/NAME`: the recorded attempts of a run graded again, by another judge or a mended grader.

Nothing is run and nothing of the run is changed: the verdicts go to a file of their own beside it, and
what differs is printed. Where no judge is named it is the run's own, whose replies are in the run's
cache: only questions that are new cost anything.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.text import Text

from judges.options import add_judge_arguments, open_judge_again
from rollout.errors import UsageError
from rollout.grading import grade_again
from rollout.judge import Judge
from rollout.manifest import Code, Manifest
from rollout.options import Parser, positive
from rollout.recorded import recorded_options
from rollout.store import EpisodeStore
from rollout.suite import Suite
from rollout.types import Episode, JsonObject, Outcome, Record, Task
from suites.command.progress import STYLES
from suites.command.result import print_result, summarise_run

__all__ = ["rescore"]

GRADED = (Outcome.PASSED, Outcome.FAILED, Outcome.JUDGE_ERROR)
"""What ended with a world to grade."""


class Header(Record, frozen=True, kw_only=True):
    """The first line of the file: who graded, and what."""

    rescored: str
    """When, local time."""
    code: Code
    judge: JsonObject
    suite: JsonObject
    changed: tuple[str, ...] = ()
    """Tasks whose data, graders included, is no longer that of the run."""


async def rescore(suite: Suite, argv: Sequence[str], screen: Console) -> int:
    """Grade again, write, print; the exit code. Raises UsageError."""
    folder, manifest, chosen = _arguments(suite, argv)
    tasks = {task.id: task for task in suite.tasks(chosen.data)}
    async with open_judge_again(chosen, manifest.judge, folder) as (spec, judge):
        before, after = await _grade(suite, tasks, folder, judge, chosen.concurrency)
        header = Header(
            rescored=time.strftime("%Y-%m-%dT%H:%M:%S"),
            code=Code.here(),
            judge={"spec": spec, **judge.fingerprint()} if judge else {},
            suite={"name": suite.name, **suite.fingerprint(chosen.data)},
            changed=_changed(tasks, manifest),
        )
    path = _write(folder, header, after)
    _print_changes(screen, header, before, after, tasks)
    result = summarise_run(
        suite=suite.name,
        harness=str(manifest.harness.get("name", "")),
        model=str(manifest.model.get("model", "")),
        k=manifest.attempts,
        tasks=list(tasks.values()),
        episodes=after,
        paths={"rescored": str(path)},
        notes=(*suite.notes(), f"graded again, judge {spec or 'none'}"),
    )
    print_result(Console(), result)
    return 0


def _arguments(suite: Suite, argv: Sequence[str]) -> tuple[Path, Manifest, argparse.Namespace]:
    """What the user asked for; what is left open is as it was in the run."""
    parser = Parser(prog=f"python -m suites.{suite.name} rescore", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    grading = parser.add_argument_group("how it is graded")
    add_judge_arguments(grading)
    grading.add_argument("--data", type=Path, metavar="PATH", help="the tasks (the run's)")
    grading.add_argument(
        "--concurrency", type=positive(int), default=os.cpu_count() or 2, metavar="N"
    )
    suite.add_arguments(parser.add_argument_group(f"of {suite.name}"))
    folder = parser.parse_known_args(argv)[0].run
    manifest = Manifest.read(folder)
    if (ran := manifest.suite.get("name")) != suite.name:
        raise UsageError(f"{folder} is a run of {ran}: python -m suites.{ran} rescore {folder}")
    parser.set_defaults(**recorded_options(suite, manifest))
    chosen = parser.parse_args(argv, argparse.Namespace(base_url=""))
    suite.configure(chosen)
    return folder, manifest, chosen


async def _grade(
    suite: Suite, tasks: Mapping[str, Task], folder: Path, judge: Judge | None, concurrency: int
) -> tuple[list[Episode], list[Episode]]:
    """The last try of each attempt, before and after; as it was where there is nothing to grade."""
    slots, environment = asyncio.Semaphore(concurrency), suite.environment()

    async def graded(store: EpisodeStore, episode: Episode) -> Episode:
        task = tasks.get(episode.task_id)
        if task is None or episode.outcome not in GRADED:
            return episode
        async with slots:
            return await grade_again(environment, task, episode, store.trace(episode), judge)

    try:
        with EpisodeStore.read(folder) as store:
            before = [episode for _, episode in sorted(store.latest().items())]
            after = await asyncio.gather(*(graded(store, episode) for episode in before))
    finally:
        await environment.close()
    return before, after


def _changed(tasks: Mapping[str, Task], manifest: Manifest) -> tuple[str, ...]:
    """The tasks whose data is not what the run had."""
    had = manifest.tasks
    return tuple(i for i in tasks if i in had and tasks[i].fingerprint != had[i])


def _write(folder: Path, header: Header, episodes: Sequence[Episode]) -> Path:
    """A new file beside the run's own: the header, then an episode a line."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    lines = b"".join(msgspec.json.encode(record) + b"\n" for record in (header, *episodes))
    for name in (f"rescored-{stamp}.jsonl", f"rescored-{stamp}-{os.getpid()}.jsonl"):
        try:
            with (folder / name).open("xb") as file:
                file.write(lines)
            return folder / name
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"{folder / name}: {error.strerror}") from error
    raise UsageError(f"{folder}: rescored twice in this second; try again")


def _print_changes(
    screen: Console,
    header: Header,
    before: Sequence[Episode],
    after: Sequence[Episode],
    tasks: Mapping[str, Task],
) -> None:
    """What a reader must know before the table: other data, other outcomes, other scores."""
    lines: list[Text | str] = []
    if header.changed:
        names = ", ".join(header.changed[:5]) + (" ..." if len(header.changed) > 5 else "")
        lines.append(f"{len(header.changed)} tasks are not as they were in the run: {names}")
    if gone := {episode.task_id for episode in before} - tasks.keys():
        lines.append(f"left as they were, for there is no such task: {', '.join(sorted(gone))}")
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old is not new]
    turned = [(old, new) for old, new in pairs if old.outcome is not new.outcome]
    lines += [_change(old, new) for old, new in turned]
    moved = sum(_score(old) != _score(new) for old, new in pairs)
    lines.append(
        f"{len(pairs)} attempts graded again: {len(turned)} other outcomes, {moved} other scores"
    )
    for line in lines:
        screen.print(line, soft_wrap=True, highlight=False)


def _change(old: Episode, new: Episode) -> Text:
    line = Text(f"{old.task_id}#{old.attempt} ")
    for episode, arrow in ((old, " -> "), (new, "")):
        line.append(episode.outcome.value, style=STYLES[episode.outcome])
        line.append(f"{_score(episode)}{arrow}")
    return line.append(f"  {new.reason}" if new.reason else "", style="dim")


def _score(episode: Episode) -> str:
    return f" {episode.grade.score:.2f}" if episode.grade else ""
