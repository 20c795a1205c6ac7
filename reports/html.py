"""The report as one page that opens from disk: tables, charts and an episode viewer.

`index.html` carries its style, its scripts, plotly.js and all figures. Beside it lie `episodes/` (shards
of the episodes' stories) and `images/` (their pictures), which the page loads when an episode is opened.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

import msgspec
from plotly.offline import get_plotlyjs

from reports.charts import figures
from reports.figure import Figure
from reports.load import Run, Runs
from reports.markup import paragraph, table_html
from reports.shards import Pictures, Shards, script_json
from reports.table import Table
from reports.viewer import detail, row
from rollout.errors import usable
from rollout.types import JsonObject

__all__ = ["write_report"]

SCRIPTS = ("theme", "viewer", "app")


@dataclass(frozen=True)
class Section:
    """One part of the page: which charts and tables it holds, in order."""

    name: str
    title: str
    about: str
    figures: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


SECTIONS = (
    Section(
        "reliability",
        "Reliability",
        "Whether an agent succeeds every time, not only once.",
        ("curves", "heat-map"),
        ("paired", "pass-at-k", "outcomes", "tasks", "transfer"),
    ),
    Section(
        "behaviour",
        "Behaviour",
        "What agents do on the way, computed from the records of their calls.",
        ("radar",),
        ("behaviour", "effort", "tool-use", "measures"),
    ),
    Section(
        "cost",
        "Cost and time",
        "What an attempt takes: tokens, calls, seconds, and money where prices are known.",
        ("time-split",),
        ("cost", "time"),
    ),
    Section(
        "runs",
        "Runs",
        "What was run, setting by setting, and what differs between the runs.",
        (),
        ("comparability",),
    ),
)
FIRST = "cross-harness"
"""The table of the first screen."""


def write_report(
    runs: Runs,
    tables: Sequence[Table],
    folder: Path,
    *,
    title: str = "",
    answer: Sequence[str] = (),
) -> Path:
    """Write the report into `folder`; the path of its index.html.

    Traces are read one at a time. Raises UsageError where the folder can't be written, or a trace is
    damaged.
    """
    with usable(folder, "choose another folder with --out"):
        folder.mkdir(parents=True, exist_ok=True)
    episodes, links = _write_episodes(runs, folder)
    shown = figures(runs, tables, links)
    page = _filled(
        {
            "title": escape(title or _title(runs)),
            "style": _file("style.css"),
            "navigation": _navigation(tables),
            "sections": "".join(
                _sections(runs, tables, shown, links, title or _title(runs), answer)
            ),
            "footer": escape(_footer(runs, len(episodes))),
            "data": script_json(_data(runs, episodes, shown)),
        }
    )
    path = folder / "index.html"
    with usable(path, "choose another folder with --out"):
        path.write_text(page, encoding="utf-8")
    return path


def _write_episodes(
    runs: Runs, folder: Path
) -> tuple[list[list[object]], dict[tuple[str, str], int]]:
    """The shards and pictures; the list's rows, and the place of each (run's label, episode's id)."""
    rows: list[list[object]] = []
    links: dict[tuple[str, str], int] = {}
    pictures = Pictures(folder / "images")
    with Shards(folder / "episodes") as shards:
        for n, run in enumerate(runs):
            for episode in (*run.episodes, *run.earlier):
                story = detail(episode, run.trace(episode), pictures.keep)
                links[run.label, episode.id] = len(rows)
                rows.append(row(n, episode, shards.add(len(rows), story)))
    return rows, links


def _data(
    runs: Runs, episodes: Sequence[Sequence[object]], shown: Mapping[str, Figure]
) -> JsonObject:
    return {
        "runs": [{"label": r.label, "harness": r.harness, "model": r.model} for r in runs],
        "episodes": episodes,
        "figures": {
            name: {"data": figure.data, "layout": {**figure.layout, "height": figure.height}}
            for name, figure in shown.items()
        },
    }


def _sections(
    runs: Runs,
    tables: Sequence[Table],
    shown: Mapping[str, Figure],
    links: Mapping[tuple[str, str], int],
    title: str,
    answer: Sequence[str],
) -> Iterator[str]:
    by_name = {table.name: table for table in tables}
    told: set[str] = set()

    def table(name: str) -> str:
        found = by_name.pop(name, None)
        if found is None:
            return ""
        html = table_html(found, links, told)
        told.update(found.notes)
        return html

    yield _overview(title, answer, table(FIRST), shown)
    for section in SECTIONS:
        body = "".join(_chart(shown[name]) for name in section.figures if name in shown)
        body += "".join(table(name) for name in section.tables)
        if section.name == "runs":
            body += "".join(map(_manifest, runs))
        if body:
            yield _section(section.name, section.title, section.about, body)
    if by_name:
        yield _section("more", "More tables", "", "".join(table(name) for name in list(by_name)))


def _overview(title: str, answer: Sequence[str], first: str, shown: Mapping[str, Figure]) -> str:
    lines = "".join(map(_answer, answer))
    charts = _chart(shown["reliability-bars"]) if "reliability-bars" in shown else ""
    return (
        f'<section id="overview"><h1>{escape(title)}</h1><ul class="verdict">{lines}</ul>'
        f"{first}{charts}</section>"
    )


def _answer(line: str) -> str:
    """A paragraph of the answer, its first sentence for those who read no more."""
    first, stop, rest = line.partition(". ")
    return f"<li><strong>{escape(first + stop.strip())}</strong> {escape(rest)}</li>"


def _section(name: str, title: str, about: str, body: str) -> str:
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(title)}</h2>'
        f"{paragraph(about, 'about')}{body}</section>"
    )


def _chart(figure: Figure) -> str:
    """Its place, as high as it will be; the table beside it says the same to who can't see it."""
    label = escape(f"Chart: {figure.title}. {figure.about}")
    return (
        f'<figure class="chart"><figcaption><strong>{escape(figure.title)}</strong>'
        f"{escape(figure.about)}</figcaption>"
        f'<div class="wide" tabindex="0"><div data-figure="{figure.name}" role="img" '
        f'aria-label="{label}" style="height:{figure.height}px;min-width:{figure.width}px"></div>'
        "</div></figure>"
    )


def _manifest(run: Run) -> str:
    """A run's manifest without its two lists of tasks, which the tables name."""
    fields = run.manifest.as_json()
    fields["tasks"] = f"{len(run.manifest.tasks)} tasks"
    fields.pop("first_sent")
    text = msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()
    return (
        f"<details><summary>{escape(run.label)}: manifest of "
        f"<code>{escape(str(run.folder))}</code></summary>"
        f'<pre tabindex="0">{escape(text)}</pre></details>'
    )


def _navigation(tables: Sequence[Table]) -> str:
    named = {name for section in SECTIONS for name in section.tables} | {FIRST}
    more = [("more", "More tables")] if any(table.name not in named for table in tables) else []
    parts = [(section.name, section.title) for section in SECTIONS]
    places = [("overview", "Answer"), *parts, *more, ("episodes", "Episodes")]
    return "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title in places)


def _title(runs: Runs) -> str:
    suites = " and ".join(dict.fromkeys(run.suite for run in runs))
    if len(runs) == 1:
        return f"How reliable is {runs.base.label} on {suites}?"
    several = {run.harness for run in runs}, {run.model for run in runs}
    compared = next(
        (w for w, n in zip(("harness", "model"), several, strict=True) if len(n) > 1), "run"
    )
    return f"Which {compared} is more reliable on {suites}?"


def _footer(runs: Runs, episodes: int) -> str:
    folders = ", ".join(str(run.folder) for run in runs)
    return (
        f"{episodes:,} episodes of {len(runs)} runs ({folders}). Keep the folders episodes and images "
        "beside this page; its tables are in the folder tables as CSV, Parquet and Markdown."
    )


def _filled(fields: Mapping[str, str]) -> str:
    """The template with its fields and scripts, and a policy that lets nothing else run or load."""
    scripts = {name: _file(f"{name}.js") for name in SCRIPTS} | {"plotly": get_plotlyjs()}
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts.values())
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
        f"img-src 'self' file: data:; script-src 'self' file: {hashes}"
    )
    values = {**fields, **scripts, "policy": policy}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], _file("template.html"))


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _file(name: str) -> str:
    return resources.files("reports").joinpath("page", name).read_text(encoding="utf-8")
