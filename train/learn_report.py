"""What `train.learn` found, as docs/learning.md and docs/learning.svg."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from rollout.statistics import mean, resampled_sums, summarise
from rollout.store import EpisodeStore
from rollout.types import Episode, JsonObject, Outcome, Trace

__all__ = ["HARNESSES", "Arm", "paired_rise", "write_report"]

K = 3
HARNESSES = ("react", "react_text")

PREAMBLE = """\
# It learns

Written by `make learn` (`python -m train.learn`), which does all of it again from nothing: two CPU cores,
{minutes}. `train/learn.py` has every setting.

A model of the Qwen3 architecture with {size:,} parameters, its own tokenizer and random weights is taught
a little by SFT on what the reference policy did, under two harnesses: `react` (tool calls) and
`react_text` (actions and observations as text). Then GRPO goes on from there, {steps} steps of {batch}
drills x {group} attempts, in the real harness, through the gateway, in the Claw world; reward is the
share of the drill that is right. All figures are of {tasks} held-out drills, whose names, numbers and
days no training task has; {k} attempts each at temperature 1. Intervals are 95 %, over tasks.
"""


TRANSFER = """
## Trained in one harness, tested in another

pass^{k}, mean of seeds, each seed in brackets; the rise over SFT alone with its interval.

{passed}
Attempts that ended with a tool call in the other harness's form (`Action: ...` in react, `<tool_call>` in
react_text), which the harness takes for an answer:

{strange}"""


@dataclass(frozen=True)
class Arm:
    """A kind of run."""

    name: str
    harnesses: str
    """Trained in, as `--harness` takes them."""
    guest: str
    """Only tested in."""


@dataclass(frozen=True)
class Evaluation:
    """A model's attempts at the held-out drills in one harness."""

    episodes: Sequence[Episode]
    strange: float
    """The share that wrote a tool call in the other harness's form."""

    @property
    def per_task(self) -> NDArray[np.float64]:
        """1 where all attempts passed, by task in one order."""
        passed: dict[str, list[bool]] = defaultdict(list)
        for episode in self.episodes:
            passed[episode.task_id].append(episode.outcome is Outcome.PASSED)
        return np.array([float(all(passed[task])) for task in sorted(passed)])

    @property
    def text(self) -> str:
        """pass^k with its interval, in per cent."""
        figure = summarise(self.episodes, K).rates.pass_hat_k
        assert figure is not None
        return f"{figure.value:.0%} ({figure.low:.0%} to {figure.high:.0%})"


def write_report(out: Path, docs: Path, arms: Sequence[Arm], seeds: Sequence[int]) -> None:
    """Read the runs below `out`, write both files into `docs`."""
    runs = {(arm.name, seed): _Run(out / f"{arm.name}-{seed}") for arm in arms for seed in seeds}
    main = [runs["react", seed] for seed in seeds]
    parts = [_preamble(out, main[0]), _rise(main, seeds), "![curve](learning.svg)\n"]
    parts += [_behaviour(main), _transfer(runs, arms, seeds)]
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "learning.md").write_text("\n".join(parts), "utf-8")
    (docs / "learning.svg").write_text(_curve(runs, arms, seeds), "utf-8")


def paired_rise(
    before: NDArray[np.float64], after: NDArray[np.float64]
) -> tuple[float, float, float]:
    """The mean difference of the same tasks and its 95 % bootstrap interval over tasks."""
    change = after - before
    low, high = np.quantile(resampled_sums(change) / len(change), (0.025, 0.975))
    return float(change.mean()), float(low), float(high)


class _Run:
    """One run's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        lines = (folder / "metrics.jsonl").read_bytes().splitlines()
        self.metrics: list[JsonObject] = [msgspec.json.decode(line) for line in lines]
        self.settings = msgspec.json.decode((folder / "settings.json").read_bytes())
        self.steps = sorted(int(path.name) for path in (folder / "evals").iterdir())

    def evaluation(self, step: int, harness: str) -> Evaluation:
        folder = self.folder / "evals" / f"{step:06d}" / harness
        with EpisodeStore.read(folder) as store:
            episodes = list(store.latest().values())
            strange = [float(_strange(e, store.trace(e), harness)) for e in episodes]
            return Evaluation(episodes, mean(strange))

    def before(self, harness: str) -> Evaluation:
        return self.evaluation(self.steps[0], harness)

    def after(self, harness: str) -> Evaluation:
        return self.evaluation(self.steps[-1], harness)


def _strange(episode: Episode, trace: Trace, harness: str) -> bool:
    """Whether an attempt ended with a call that this harness does not understand."""
    if harness == "react":
        return "Action: " in trace.answer
    return "tool_calls" in episode.limit


def _preamble(out: Path, run: _Run) -> str:
    told = msgspec.json.decode((out / "figures.json").read_bytes())
    return PREAMBLE.format(
        batch=run.settings["batch"],
        group=run.settings["group"],
        minutes=f"{told['minutes']:.0f} minutes",
        size=told["parameters"],
        steps=run.steps[-1],
        tasks=len(run.before("react").per_task),
        k=K,
    )


def _rise(runs: Sequence[_Run], seeds: Sequence[int]) -> str:
    rows, changes = [], []
    for run, seed in zip(runs, seeds, strict=True):
        before, after = run.before("react"), run.after("react")
        rows.append([f"seed {seed}", before.text, after.text, _points(before, after)])
        changes.append((before.per_task, after.per_task))
    pooled = paired_rise(*(np.mean([pair[i] for pair in changes], 0) for i in (0, 1)))
    rows.append(["mean of seeds", "", "", _rise_text(*pooled)])
    head = ["react", f"pass^{K} before GRPO", f"pass^{K} after", "rise, points"]
    return f"\n## Held-out drills, before and after\n\n{_table(head, rows)}"


def _points(before: Evaluation, after: Evaluation) -> str:
    return _rise_text(*paired_rise(before.per_task, after.per_task))


def _rise_text(value: float, low: float, high: float) -> str:
    return f"{100 * value:+.0f} ({100 * low:+.0f} to {100 * high:+.0f})"


def _behaviour(runs: Sequence[_Run]) -> str:
    """How the same policy behaves before and after, over all seeds."""
    before = [e for run in runs for e in run.before("react").episodes]
    after = [e for run in runs for e in run.after("react").episodes]
    families = sorted({episode.task_id.split("-")[0] for episode in before})
    measures: list[tuple[str, Callable[[Sequence[Episode]], str]]] = [
        *((f"passed, {family}", _passed_in(family)) for family in families),
        ("passed, all", _share(lambda e: e.outcome is Outcome.PASSED)),
        ("did not make the record (or several)", _share(lambda e: "has one record" in e.reason)),
        ("made it with a wrong field", _share(lambda e: "has the right" in e.reason)),
        ("ended by a limit", _share(lambda e: bool(e.limit))),
        ("model calls", _average(lambda e: e.calls)),
        ("tool calls", _average(lambda e: e.tool_calls)),
        ("tokens said", _average(lambda e: e.usage.completion)),
    ]
    rows = [[name, measure(before), measure(after)] for name, measure in measures]
    table = _table(["react, an attempt", "before", "after"], rows)
    return f"\n## What changed in its behaviour\n\n{table}"


def _passed_in(family: str) -> Callable[[Sequence[Episode]], str]:
    def measure(episodes: Sequence[Episode]) -> str:
        mine = [e for e in episodes if e.task_id.startswith(f"{family}-")]
        return _share(lambda e: e.outcome is Outcome.PASSED)(mine)

    return measure


def _share(of: Callable[[Episode], bool]) -> Callable[[Sequence[Episode]], str]:
    return lambda episodes: f"{mean([float(of(e)) for e in episodes]):.0%}"


def _average(of: Callable[[Episode], float]) -> Callable[[Sequence[Episode]], str]:
    return lambda episodes: f"{mean([float(of(e)) for e in episodes]):.1f}"


def _transfer(runs: dict[tuple[str, int], _Run], arms: Sequence[Arm], seeds: Sequence[int]) -> str:
    """Trained here, tested there."""
    first = runs[arms[0].name, seeds[0]]
    passed = [["nothing (SFT alone)", *(first.before(harness).text for harness in HARNESSES)]]
    strange = [["nothing (SFT alone)", *(f"{first.before(h).strange:.0%}" for h in HARNESSES)]]
    for arm in arms:
        found = [runs[arm.name, seed] for seed in seeds]
        passed.append([arm.harnesses, *(_over_seeds(found, harness) for harness in HARNESSES)])
        shares = [mean([run.after(h).strange for run in found]) for h in HARNESSES]
        strange.append([arm.harnesses, *(f"{share:.0%}" for share in shares)])
    head = ["GRPO in", *(f"tested in {harness}" for harness in HARNESSES)]
    return TRANSFER.format(k=K, passed=_table(head, passed), strange=_table(head, strange))


def _over_seeds(runs: Sequence[_Run], harness: str) -> str:
    after = [run.after(harness).per_task for run in runs]
    before = [run.before(harness).per_task for run in runs]
    values = ", ".join(f"{one.mean():.0%}" for one in after)
    rise = paired_rise(np.mean(before, 0), np.mean(after, 0))
    return f"{np.mean(after):.0%} ({values}); {_rise_text(*rise)}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


WIDTH, HEIGHT, MARGIN = 720, 300, 40
COLOURS = {"react": "#1b6ca8", "react_text": "#c2571a", "both": "#3a7d44"}


def _curve(runs: dict[tuple[str, int], _Run], arms: Sequence[Arm], seeds: Sequence[int]) -> str:
    """Mean reward of training by step, a thin line a seed, a thick one for their mean."""
    steps = max(run.steps[-1] for run in runs.values())
    shapes = [_axes(steps)]
    for place, arm in enumerate(arms):
        colour = COLOURS.get(arm.name, "#555")
        curves = [_rewards(runs[arm.name, seed]) for seed in seeds]
        shapes += [_line(curve, steps, colour, 0.6, 0.35) for curve in curves]
        shapes.append(_line(list(np.mean(curves, 0)), steps, colour, 2.2, 1.0))
        x, y = WIDTH - MARGIN - 150, HEIGHT - MARGIN - 52 + 16 * place
        shapes.append(f'<text x="{x}" y="{y}" fill="{colour}">GRPO in {arm.harnesses}</text>')
    style = "font-family:sans-serif;font-size:12px"
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    inside = "\n".join(shapes)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} style="{style}">\n{inside}\n</svg>\n'


def _rewards(run: _Run) -> list[float]:
    """Smoothed over five steps: a step has eight tasks, some harder than others."""
    told = [line["reward"] for line in run.metrics if "reward" in line]
    return [mean(told[max(0, n - 4) : n + 1]) for n in range(len(told))]


def _axes(steps: int) -> str:
    parts = ['<rect width="100%" height="100%" fill="white"/>']
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(value)
        parts.append(
            f'<path d="M{MARGIN} {y:.1f}H{WIDTH - MARGIN}" stroke="#ddd"/>'
            f'<text x="6" y="{y + 4:.1f}">{value:.2f}</text>'
        )
    middle = f'x="{WIDTH / 2:.0f}" text-anchor="middle"'
    parts.append(f'<text {middle} y="{HEIGHT - 12}">step of GRPO (0 to {steps})</text>')
    parts.append(f'<text {middle} y="20">mean reward of training episodes</text>')
    return "\n".join(parts)


def _line(values: Sequence[float], steps: int, colour: str, width: float, opacity: float) -> str:
    span = WIDTH - 2 * MARGIN
    points = " ".join(
        f"{MARGIN + span * n / max(1, steps - 1):.1f},{_y(value):.1f}"
        for n, value in enumerate(values)
    )
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"'
        f' opacity="{opacity}"/>'
    )


def _y(value: float) -> float:
    return HEIGHT - MARGIN - value * (HEIGHT - 2 * MARGIN)
