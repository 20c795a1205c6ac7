"""Any suite as an Inspect AI task, for those whose evaluations all run under `inspect eval`.

    inspect eval suites/inspect_adapter.py@anyharness -T suite=claweval -T harness=codex \\
        -T model=openai:NAME -T base_url=http://localhost:8000/v1 -T tasks=10 --max-samples 8

An attempt is an Inspect sample, run and graded exactly as by `python -m suites.NAME`; Inspect's own
models, tools and sandboxes take no part in it. The model is named by `-T model`, not by `--model`.
An attempt that the infrastructure failed is a sample error: it is not scored, and `--retry-on-error`
runs it again. Nothing is written but Inspect's log; a run to train from needs `python -m suites.NAME`.
Inspect runs tasks in this file's folder: paths (`-T data=`) must be absolute.
"""

from __future__ import annotations

import asyncio

import msgspec
from inspect_ai import Epochs, task
from inspect_ai import Task as InspectTask
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from pydantic import TypeAdapter

from rollout.episode import Setup, run_episode
from rollout.errors import RolloutError
from rollout.plugins import load
from rollout.runner import attempt_seed
from rollout.suite import Suite
from rollout.types import Episode, Task
from suites.command.inspect_log import reducers
from suites.command.inspect_messages import conversation
from suites.command.options import Options, parse, select
from suites.command.setup import fitted, open_setup

__all__ = ["anyharness"]

_MESSAGES: TypeAdapter[list[ChatMessage]] = TypeAdapter(list[ChatMessage])


@task
def anyharness(suite: str, **options: str | int | float) -> InspectTask:
    """A suite under a harness. `options` are those of `python -m suites.NAME`, `-` written as `_`."""
    chosen = load("suites", suite, Suite)()
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    parsed = parse(chosen, arguments)
    tasks = select(chosen.tasks(parsed.data), parsed.tasks)
    return InspectTask(
        name=suite,
        dataset=MemoryDataset(
            [
                Sample(id=task.id, input=task.prompt, metadata={"category": task.category})
                for task in tasks
                if not task.skip
            ],
            name=suite,
        ),
        solver=episode(chosen, parsed, tasks),
        scorer=outcome(),
        epochs=Epochs(parsed.attempts, reducers(parsed.attempts)),
        # Errors are expected and leave gaps; when half of the samples fail, it is the setup.
        fail_on_error=0.5,
    )


@solver
def episode(suite: Suite, options: Options, tasks: list[Task]) -> Solver:
    """Run one attempt at the sample's task; raise when it ends without a grade."""
    by_id = {task.id: task for task in tasks}
    held = _HeldSetup(suite, options)

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        task, attempt = by_id[str(state.sample_id)], state.epoch - 1
        setup = await held.get()
        [task] = fitted(suite, [task], setup)
        found, trace = await run_episode(
            setup, task, attempt, seed=attempt_seed(options.seed, task.id, attempt)
        )
        state.metadata["episode"] = msgspec.to_builtins(found)
        state.messages = _MESSAGES.validate_python(conversation(trace, task.prompt))
        state.output = ModelOutput.from_content(setup.gateway.upstream.label, trace.answer)
        state.completed = True
        if not found.outcome.graded:
            raise RolloutError(f"{found.outcome.value} ({found.cause}): {found.reason}")
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def outcome() -> Scorer:
    """`passed` (0 or 1) and `reward`, as the environment graded the episode."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        found = msgspec.convert(state.metadata["episode"], Episode)
        assert found.grade is not None
        return Score(
            value={"passed": int(found.outcome == "passed"), "reward": found.grade.score},
            answer=state.output.completion,
            explanation=found.reason,
            metadata={"parts": found.grade.parts},
        )

    return score


class _HeldSetup:
    """The setup that all samples share: opened by the first, closed when Inspect's loop ends.

    Inspect tells nobody that a task's last sample is done. One asyncio task opens and closes the
    setup; the end of the event loop cancels that task, which unwinds it.
    """

    def __init__(self, suite: Suite, options: Options) -> None:
        self._suite = suite
        self._options = options
        self._ready: asyncio.Future[Setup] | None = None
        self._holder: asyncio.Task[None] | None = None

    async def get(self) -> Setup:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._holder = asyncio.create_task(self._hold(self._ready))
        return await asyncio.shield(self._ready)

    async def _hold(self, ready: asyncio.Future[Setup]) -> None:
        try:
            async with open_setup(self._suite, self._options) as setup:
                ready.set_result(setup)
                await asyncio.Event().wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)
