"""What the local trainer shows on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rollout.types import Episode, JsonObject
from train.local.trainer import Watcher

__all__ = ["progress"]


class Display(Watcher):
    """A bar of steps, with the last step's reward and the last pass^k beside it."""

    def __init__(self, bar: Progress, steps: int) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=steps, reward="", held_out="", episodes="")
        self._episodes = 0

    def begun(self, step: int) -> None:
        self._bar.update(self._task, completed=step)

    def finished(self, episode: Episode) -> None:
        self._episodes += 1
        self._bar.update(self._task, episodes=f"{self._episodes} episodes")

    def stepped(self, step: int, values: JsonObject) -> None:
        reward = f"{values['reward']:.2f}" if "reward" in values else "-"
        told = f"reward {reward}  entropy {values['entropy']:.2f}"
        self._bar.update(self._task, completed=step, reward=told)

    def evaluated(self, step: int, values: JsonObject) -> None:
        figures = {
            name.split("/", 1)[1]: value for name, value in values.items() if "pass^" in name
        }
        told = [f"{n} {v:.0%}" for n, v in figures.items() if not n.endswith(("/low", "/high"))]
        self._bar.update(self._task, completed=step, held_out="  ".join(told))
        self._bar.console.print(f"step {step}: held out {', '.join(told)}")


@contextmanager
def progress(steps: int, *, quiet: bool = False) -> Iterator[Watcher]:
    """A display on stderr for as long as the context lasts."""
    columns = (
        TextColumn("step"),
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        *(TextColumn(f"{{task.fields[{name}]}}") for name in ("reward", "held_out", "episodes")),
    )
    bar = Progress(*columns, console=Console(stderr=True), disable=quiet)
    with bar:
        yield Display(bar, steps)
