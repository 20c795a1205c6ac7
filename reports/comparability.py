"""Which runs can be compared: what differs between their manifests beyond what is being compared.

The compared factors are the harness and the model. Whatever else differs (tasks, tool surface, sampling,
sandbox ...) may be the real reason of a difference in the results, so it is named field by field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pandas as pd

from reports.load import Run, Runs
from reports.table import Column, Table
from rollout.manifest import Manifest, differences

__all__ = ["Mark", "comparability", "marks", "notes", "unfinished", "unlike"]

MINOR = (
    *("code.", "retries.", "sandbox.version", "seed", "attempts"),
    *("model.base_url", "model.dialects", "model.version"),
)
"""Fields that rarely change a result: to be minded, not to forbid a comparison."""
LONGEST = 60
"""Characters of a value that are shown."""


@dataclass(frozen=True)
class Mark:
    """A field in which a run differs from the base run."""

    run: str
    field: str
    base: str
    this: str
    minor: bool
    """Whether the runs can be compared all the same."""

    def __str__(self) -> str:
        weight = "minor" if self.minor else "not comparable"
        return f"{self.run}: {self.field} is {self.this}, not {self.base} ({weight})"


def comparability(runs: Runs) -> Table:
    """What differs, field by field."""
    found = marks(runs)
    frame = pd.DataFrame(
        [(m.run, m.field, m.base, m.this, not m.minor) for m in found],
        columns=["run", "field", "base", "this", "serious"],
    )
    return Table(
        name="comparability",
        title="Can these runs be compared?",
        frame=frame,
        columns={
            "run": Column("run"),
            "field": Column("field", help="Its path in the run's manifest.json."),
            "base": Column(f"in {runs.base.label}"),
            "this": Column("in this run"),
            "serious": Column(
                "not comparable", "flag", help="Whether it may be the reason of a difference."
            ),
        },
        about=(
            f"What differs from the base run, {runs.base.label}, beside the harness and the model, by "
            "the runs' manifests. " + ("" if found else "Nothing does: the runs can be compared.")
        ).strip(),
        notes=tuple(unfinished(runs)),
    )


def notes(runs: Runs) -> tuple[str, ...]:
    """For the foot of every table: serious differences one by one, minor ones by name, open runs."""
    found = marks(runs)
    lines = [str(mark) for mark in found if not mark.minor]
    minor: dict[str, list[str]] = {}
    for mark in found:
        if mark.minor:
            minor.setdefault(mark.run, []).append(mark.field)
    lines += [f"{run}: minor differences in {', '.join(names)}" for run, names in minor.items()]
    return (*lines, *unfinished(runs))


def marks(runs: Runs) -> list[Mark]:
    """All differences of the runs to the base run."""
    return [mark for run in runs for mark in unlike(runs.base, run)]


def unlike(base: Run, run: Run) -> list[Mark]:
    """What differs between two runs beside what is compared."""
    return [] if run is base else [*_settings(base, run), *_tasks(base, run), *_prompts(base, run)]


def _settings(base: Run, run: Run) -> Iterator[Mark]:
    for field, old, new in differences(_plain(base.manifest), _plain(run.manifest)):
        if not _is_compared(field, base, run):
            minor = field.startswith(MINOR)
            yield Mark(run.label, field, _short(old), _short(new), minor)


def _plain(manifest: Manifest) -> Manifest:
    """Without what is told otherwise: each task's own hash."""
    return msgspec.structs.replace(manifest, tasks={})


def _is_compared(field: str, base: Run, run: Run) -> bool:
    """Whether a field belongs to the factor that is compared: another harness, another model."""
    if field.startswith("harness."):
        return base.harness != run.harness
    if field == "context_window" or field.startswith("model."):
        return base.model != run.model and field != "model.base_url"
    # The SKILL.md folders of other tasks, or of another surface, are others: that is told already.
    one, two = base.manifest, run.manifest
    return field == "skills" and (one.tools != two.tools or one.tasks.keys() != two.tasks.keys())


def _tasks(base: Run, run: Run) -> Iterator[Mark]:
    old, new = base.manifest.tasks, run.manifest.tasks
    if old.keys() != new.keys():
        here, both = f"{len(new)} tasks", len(old.keys() & new.keys())
        yield Mark(run.label, "tasks", f"{len(old)} ({both} in both)", here, minor=False)
    for task in sorted(old.keys() & new.keys()):
        if old[task] != new[task]:
            yield Mark(run.label, f"tasks.{task}", old[task][:12], new[task][:12], minor=False)


def _prompts(base: Run, run: Run) -> Iterator[Mark]:
    """What the same harness first said to the model: it may change with neither name nor version."""
    if base.harness != run.harness or base.manifest.tools != run.manifest.tools:
        return
    old, new = base.manifest.first_sent, run.manifest.first_sent
    both = sorted(old.keys() & new.keys())
    for field in ("system_sha256", "tools_sha256"):
        changed = [task for task in both if getattr(old[task], field) != getattr(new[task], field)]
        if changed:
            one = changed[0]
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            before, after = (getattr(sent[one], field)[:12] for sent in (old, new))
            yield Mark(run.label, f"first_sent.{field} of {one}{more}", before, after, minor=False)


def unfinished(runs: Runs) -> Iterator[str]:
    """A line for each run that was cut off, or is still going on."""
    for run in runs:
        if not run.complete:
            asked = len(run.manifest.tasks) * run.manifest.attempts
            yield f"{run.label}: {len(run.episodes)} of {asked} attempts have ended so far"


def _short(value: object) -> str:
    text = "nothing" if value is None else " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
