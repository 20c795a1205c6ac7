"""`python -m harness_wrappers doctor`: which harnesses work here, and what to do about the others.

Each installed harness does one tiny task per tool surface, in the sandbox that runs would use, with the
reference policy as its model: when that passes, program, config, gateway, tools and sandbox fit together.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from rollout.environment import Environment, Surface, World
from rollout.episode import Setup, run_episode
from rollout.errors import UsageError
from rollout.gateway.server import Gateway
from rollout.gateway.upstreams.reference import Reference
from rollout.harness import Harness
from rollout.judge import Judge
from rollout.plugins import load
from rollout.sandbox import Sandbox, SandboxProvider
from rollout.types import (
    Episode,
    Grade,
    JsonObject,
    Outcome,
    Solution,
    Step,
    Task,
    ToolReply,
    ToolSpec,
    Trace,
)

__all__ = ["Finding", "examine"]

SECRET = "swordfish"

TASK = Task(
    id="doctor",
    prompt=f"Save a note that says {SECRET!r}.",
    tools=(
        ToolSpec(
            name="notes_save",
            description="Save a note.",
            group="notes",
            input_schema={
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        ),
    ),
    reference=Solution(
        name="reference",
        steps=(Step(call="notes_save", arguments={"text": SECRET}),),
        answer="Saved.",
    ),
    timeout=180.0,
)


class _Notebook(World):
    def __init__(self) -> None:
        self.surface = Surface(prompt=TASK.prompt, tools=TASK.tools)
        self._saved: list[Any] = []

    async def call(self, name: str, arguments: Any) -> ToolReply:
        if name != "notes_save":
            return await super().call(name, arguments)
        self._saved.append(arguments)
        return ToolReply(body={"saved": len(self._saved)})

    async def snapshot(self, sandbox: Sandbox) -> JsonObject:
        return {"saved": self._saved}


class _Notebooks(Environment):
    """Passes when the note was saved and the answer came through."""

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        yield _Notebook()

    async def grade(self, task: Task, trace: Trace, judge: Judge | None = None) -> Grade:
        saved, answered = trace.world["saved"] == [{"text": SECRET}], trace.answer == "Saved."
        notes = () if saved and answered else (f"saved {trace.world}, answered {trace.answer!r}",)
        return Grade(score=float(not notes), passed=not notes, notes=notes)


@dataclass(frozen=True)
class Finding:
    """What was found out about one harness."""

    name: str
    missing: str = ""
    """Why it can't be started, with the remedy; empty when it can."""
    version: str = ""
    tested: str = ""
    """The version that this release is tested with; empty for a harness without a pinned program."""
    episodes: tuple[tuple[str, Episode], ...] = ()
    """One per tool surface."""

    @property
    def failed(self) -> bool:
        """Whether it is installed and does not work."""
        return any(episode.outcome is not Outcome.PASSED for _, episode in self.episodes)

    def __str__(self) -> str:
        if self.missing:
            return f"{self.name:<12} -       {self.missing}"
        verdict = "FAILS" if self.failed else "works"
        shown = "; ".join(f"{surface} {_told(episode)}" for surface, episode in self.episodes)
        return f"{self.name:<12} {verdict}   {self._versions()}{shown}{self._remedy()}"

    def _versions(self) -> str:
        if not self.version:
            return ""
        differs = self.tested and self.tested != self.version
        return f"{self.version}{f' (tested with {self.tested})' if differs else ''}: "

    def _remedy(self) -> str:
        if not self.failed:
            return ""
        if self.tested not in ("", self.version):
            return f". Remedy: install version {self.tested}"
        again = f"python -m suites.claweval --harness {self.name} --tasks 1"
        return f". Remedy: see what it printed with {again}"


async def examine(names: Iterable[str], sandboxes: SandboxProvider) -> AsyncIterator[Finding]:
    """Look at harnesses one after the other. Raises UsageError for a name that there is not."""
    upstream = Reference()
    async with Gateway(upstream) as gateway:
        for name in names:
            harness = load("harness_wrappers", name, Harness)()
            try:
                await harness.prepare()
            except UsageError as error:
                yield Finding(name, missing=str(error))
                continue
            if beyond := harness.unfit(TASK):
                yield Finding(name, missing=f"not tried: {beyond}")
                continue
            episodes = []
            for surface in harness.surfaces:
                setup = Setup(_Notebooks(), harness, gateway, sandboxes, surface)
                episode, _ = await run_episode(setup, TASK, 0)
                episodes.append((surface, episode))
            tested = harness.program.tested if harness.program else ""
            yield Finding(name, "", harness.version, tested, tuple(episodes))


def _told(episode: Episode) -> str:
    if episode.outcome is Outcome.PASSED:
        return f"passed in {episode.timing.total:.1f} s"
    cause = f" ({episode.cause})" if episode.cause else ""
    return f"{episode.outcome.value}{cause}: {episode.reason}"
