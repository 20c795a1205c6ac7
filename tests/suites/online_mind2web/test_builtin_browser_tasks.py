"""Every built-in task of the browser: its reference solution passes, everything else we know of fails."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from support.pages import needs_chromium
from support.solutions import played, reference

import suites.online_mind2web.builtin as builtin
from environments.browser_use.environment import BrowserUse
from environments.browser_use.task import BrowserTask
from environments.browser_use.tools import ACTIONS, parse
from environments.browser_use.verify import broken
from rollout.errors import UsageError
from rollout.types import Grade, Solution, Trace

TASKS = {task.id: task for task in builtin.builtin_tasks()}
LEVELS = {"easy": range(2, 6), "medium": range(6, 11), "hard": range(11, 25)}
QUICK = ("shop_cheapest_kettle", "library_button_missing", "tracker_drag_fonts")
"""Played in the fast tests; the others are slow together."""
SEEDS = range(3)

each_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
in_a_browser = pytest.mark.parametrize(
    "task",
    [
        pytest.param(task, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, task in TASKS.items()
    ],
)
in_browser = [pytest.mark.asyncio(loop_scope="module"), needs_chromium()]


def marked(function: Any) -> Any:
    for mark in in_browser:
        function = mark(function)
    return function


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def environment() -> AsyncIterator[BrowserUse]:
    environment = BrowserUse()
    await environment.prepare()
    yield environment
    await environment.close()


async def answered(environment: BrowserUse, task: BrowserTask, trace: Trace, answer: str) -> Grade:
    """The grade of the same attempt with another answer."""
    return await environment.grade(task, msgspec.structs.replace(trace, answer=answer))


def errors(trace: Trace) -> list[Any]:
    """The replies to calls that failed."""
    return [call.reply for call in trace.tool_calls if call.status >= 400]


def test_there_are_tasks_of_every_kind():
    tasks = list(TASKS.values())
    assert len(tasks) >= 36
    assert len(builtin.builtin_tasks()) == len(TASKS), "an id is there twice"
    assert {task.difficulty for task in tasks} == set(LEVELS)
    assert sum(task.language == "zh" for task in tasks) >= 6
    assert sum("recovery" in task.tags for task in tasks) >= 6
    assert sum("[INFEASIBLE]" in reference(task).answer for task in tasks) >= 2
    assert {site for task in tasks for site in task.sites} == set(builtin.SITES)
    used = {step.call for task in tasks for step in reference(task).steps}
    assert {
        f"browser_{name}" for name in ("drag", "hover", "scroll", "select", "upload", "tab")
    } <= used


@each_task
def test_task_is_complete(task: BrowserTask):
    assert task.id.startswith(f"{task.category}_")
    assert task.id.endswith("_zh") == (task.language == "zh")
    assert ("?lang=zh" in task.start) == (task.language == "zh")
    assert broken(task) == ""
    assert task.reference_length == len(reference(task).steps) + 1
    assert task.reference_length in LEVELS[task.difficulty]
    assert task.reference_length < task.max_turns
    assert all(Path(path).is_file() for path in task.files.values())
    assert len({wrong.name for wrong in task.wrong}) == len(task.wrong) >= 2
    assert len(task.fingerprint) == 64
    calls = [step.call for each in (reference(task), *task.wrong) for step in each.steps]
    assert set(calls) <= set(ACTIONS)


def test_a_changed_site_changes_the_fingerprints_of_its_tasks(monkeypatch, tmp_path):
    kept = builtin.sources

    def changed(names):
        other = tmp_path / "shop.yaml"
        other.write_text("products: []")
        return [other if path.name == other.name else path for path in kept(names)]

    try:
        builtin._sites_digest.cache_clear()
        monkeypatch.setattr(builtin, "sources", changed)
        now = {task.id: task for task in builtin.builtin_tasks()}
    finally:
        builtin._sites_digest.cache_clear()
    differ = {name for name, task in TASKS.items() if now[name].fingerprint != task.fingerprint}
    assert differ == {name for name, task in TASKS.items() if "shop" in task.sites}


def test_the_files_of_a_site():
    names = {path.name for path in builtin.sources(("shop",))}
    assert {"shop.py", "shop.yaml", "shop_help.yaml", "site.py", "site.js", "widgets.py"} <= names
    assert not {"travel.py", "travel.js", "tracker.yaml"} & names


@each_task
def test_schema_is_the_benchmarks(task: BrowserTask):
    path = Path(task.verifier).with_name("tasks.json")
    [entry] = [each for each in json.loads(path.read_text("utf-8")) if each["task_id"] == task.id]
    assert entry["confirmed_task"] == task.prompt
    assert entry["website"] == task.start
    assert entry["level"] == task.difficulty
    assert isinstance(entry["reference_length"], int)


@each_task
def test_arguments_are_those_of_the_tools(task: BrowserTask):
    for solution in (reference(task), *task.wrong):
        for step in solution.steps:
            places = {
                key: 0.5 if str(value).startswith("{{at:") else value
                for key, value in step.arguments.items()
            }
            parse(step.call, places)


def test_mistakes_in_a_folder_are_named(tmp_path: Path):
    folder = tmp_path / "shop"
    folder.mkdir()
    entry = {
        **{"task_id": "shop_a", "confirmed_task": "Do it.", "website": "shop:/"},
        **{"reference_length": 2, "level": "easy"},
    }
    (folder / "tasks.json").write_text(json.dumps([entry]), "utf-8")
    (folder / "solutions.yaml").write_text("shop_b: {reference: {}, wrong: []}", "utf-8")
    with pytest.raises(UsageError, match="only: shop_a, shop_b"):
        list(builtin._load(folder))
    (folder / "tasks.json").write_text(json.dumps([entry | {"level": "mild"}]), "utf-8")
    with pytest.raises(UsageError, match=r"tasks\.json: .*mild"):
        list(builtin._load(folder))


@in_a_browser
@marked
async def test_reference_passes(environment: BrowserUse, task: BrowserTask):
    moved = any(faults.get("moved") for faults in task.faults.values())
    for seed in SEEDS if moved else SEEDS[:1]:
        grade, trace = await played(environment, task, reference(task), seed)
        assert grade.passed, grade.notes
        assert not errors(trace)
    for wrong in task.wrong:
        if wrong.steps == reference(task).steps:
            assert not (await answered(environment, task, trace, wrong.answer)).passed, wrong.name


@pytest.mark.slow
@each_task
@marked
async def test_wrong_solutions_fail(environment: BrowserUse, task: BrowserTask):
    for wrong in task.wrong:
        if wrong.steps != reference(task).steps:
            grade, trace = await played(environment, task, wrong)
            assert not grade.passed, wrong.name
            # It fails for what it does, not because a target is not there.
            assert not errors(trace), wrong.name


@in_a_browser
@marked
async def test_doing_nothing_fails(environment: BrowserUse, task: BrowserTask):
    grade, _ = await played(environment, task, Solution(name="nothing"))
    assert not grade.passed
