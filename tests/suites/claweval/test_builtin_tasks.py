"""Every built-in task: its reference solution passes, everything else that we know of fails.

Grading itself refuses a verify.py that imports more than the evidence and the standard library.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from support.claw_tasks import load_task
from support.solutions import played, reference

import suites.claweval
from environments.claw import Claw
from rollout.types import Solution

FOLDERS = sorted(
    path.parent for path in Path(suites.claweval.__file__).parent.glob("tasks/*/task.yaml")
)
SAMPLES = {"string": "x", "integer": 1, "number": 1.0, "boolean": True, "array": ["x"]}
SEEDS = range(5)

each_task = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


@pytest.fixture(autouse=True)
def delays_pass_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(seconds: float) -> None:
        """A `delay` fault is over at once."""

    monkeypatch.setattr("environments.claw.world.asyncio", SimpleNamespace(sleep=sleep))


def test_ids_are_numbered_once_and_tell_the_language():
    ids = [re.fullmatch(r"(B\d\d)(zh)?_[a-z0-9_]+", folder.name) for folder in FOLDERS]
    assert all(ids)
    numbers = [found[1] for found in ids if found]
    assert len(set(numbers)) == len(numbers) > 0
    for folder, found in zip(FOLDERS, ids, strict=True):
        assert found
        assert load_task(folder).language == (found[2] or "en")


@each_task
def test_task_is_complete(folder: Path):
    task = load_task(folder)
    assert task.skip == ""
    assert task.id == folder.name
    assert task.difficulty in ("easy", "medium", "hard")
    assert task.category
    assert task.clock
    assert "general" in task.tags
    assert task.reference is not None
    assert len(task.wrong) >= 2
    assert len({wrong.name for wrong in task.wrong}) == len(task.wrong)
    assert len(reference(task).steps) < task.max_turns


@each_task
async def test_reference_passes(folder: Path):
    task = load_task(folder)
    for seed in SEEDS if task.faults else SEEDS[:1]:
        grade, trace = await played(Claw(), task, reference(task), seed)
        assert grade.passed, grade.notes
        assert grade.score == 1.0, grade.notes
        assert "[nothing at" not in repr([call.arguments for call in trace.tool_calls])
        if not task.faults:
            assert all(call.status < 400 for call in trace.tool_calls)


@each_task
async def test_doing_nothing_fails(folder: Path):
    grade, _ = await played(Claw(), load_task(folder), Solution(name="nothing"))
    assert not grade.passed


@each_task
async def test_saying_it_without_doing_it_fails(folder: Path):
    task = load_task(folder)
    grade, _ = await played(Claw(), task, Solution(name="talk", answer=reference(task).answer))
    assert not grade.passed


@each_task
async def test_wrong_solutions_fail(folder: Path):
    task = load_task(folder)
    for wrong in task.wrong:
        for seed in SEEDS if task.faults else SEEDS[:1]:
            grade, _ = await played(Claw(), task, wrong, seed)
            assert not grade.passed, f"{wrong.name}: {grade.score}"
            assert grade.notes, wrong.name


@each_task
async def test_tools_work_as_declared(folder: Path):
    task = load_task(folder)
    async with Claw().open(msgspec.structs.replace(task, faults=()), 0) as world:
        for tool in task.tools:
            fields = tool.input_schema["properties"]
            arguments = {name: SAMPLES[field["type"]] for name, field in fields.items()}
            reply = await world.call(tool.name, arguments)
            assert reply.status not in (405, 422), (tool.name, reply.body)
            assert reply.body != {"detail": "Not Found"}, tool.name
