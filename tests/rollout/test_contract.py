"""Mistakes of those who write plug-ins: each is found before it costs an episode, or tells its line."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rollout.contract import check, checked_tasks, returned
from rollout.environment import Environment, Surface, World
from rollout.errors import EnvironmentFault, UsageError, boundary
from rollout.harness import Finish, Harness, Launch
from rollout.judge import Verdict
from rollout.plugins import load
from rollout.protocol import Protocol
from rollout.suite import Suite
from rollout.types import Grade, Task, ToolSpec


class Notes(Environment):
    """As it should be."""

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        yield World()

    async def grade(self, task: Task, trace: Any, judge: Any = None) -> Grade:
        return Grade(score=1.0, passed=True)


class Polite(Protocol):
    """As it should be."""

    async def verdict(self, evidence: Any, judge: Any) -> Verdict:
        return Verdict(score=1.0)


class OneShot(Harness):
    """As it should be."""

    dialect = "chat"
    surfaces = ("skill",)


def test_what_keeps_to_its_contract_passes() -> None:
    check(Notes(), Environment)
    check(OneShot(), Harness)


@pytest.mark.parametrize(
    ("base", "attributes", "message"),
    [
        (Notes, {"grade": lambda self, task, trace, judge: None}, "must be an async function"),
        (Notes, {"open": lambda self, task: None}, r"open\(\) must take \(self, task, seed\)"),
        (Polite, {"verdict": lambda self, evidence, judge: None}, "must be an async function"),
        (OneShot, {"surfaces": "skill"}, "surfaces: Expected `array`, got `str`"),
        (OneShot, {"surfaces": ("skil",)}, "Invalid enum value 'skil'"),
        (OneShot, {"dialect": "completions"}, "dialect: Invalid enum value 'completions'"),
        (OneShot, {"finish": lambda self, result: None}, r"must take \(self, result, collected\)"),
    ],
)
def test_the_file_and_the_name_are_told(base: type, attributes: Any, message: str) -> None:
    mistaken = type("Mistaken", (base,), {**attributes, "__module__": __name__})
    contract = base.__mro__[1]
    with pytest.raises(UsageError, match=rf"test_contract\.py: Mistaken.*{message}"):
        check(mistaken(), contract)


def test_a_forgotten_decorator_is_told() -> None:
    class Bare(Notes):
        async def open(self, task: Task, seed: int) -> AsyncIterator[World]:  # type: ignore[override]
            yield World()

    with pytest.raises(UsageError, match="is @asynccontextmanager missing"):
        check(Bare(), Environment)


def test_a_forgotten_attribute_is_told() -> None:
    class Nameless(Suite):
        title = "No name"

        def environment(self) -> Environment:
            return Notes()

        def tasks(self, data: Path | None) -> list[Task]:
            return []

    with pytest.raises(UsageError, match="Nameless needs the attribute 'name'"):
        check(Nameless(), Suite)


def test_a_class_is_no_instance() -> None:
    with pytest.raises(
        UsageError, match=re.escape("not an instance of Environment; write Notes()")
    ):
        check(Notes, Environment)


def test_what_a_plug_in_gives_has_its_type() -> None:
    assert returned("a", str, "grade()") == "a"
    with pytest.raises(TypeError, match=re.escape("grade() must give a Grade, not bool")):
        returned(True, Grade, "grade()")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Launch(argv="curl -s"), "Launch.argv: Expected `array`, got `str`"),
        (lambda: Launch(argv=("curl",), env={"PORT": 5}), "Launch.env: Expected `str`, got `int`"),
        (lambda: Finish(answer={"text": "hi"}), "Finish.answer: Expected `str`, got `object`"),
        (lambda: Surface(prompt="Hi", tools=ToolSpec(name="a")), "Surface.tools: Expected `array`"),
        (lambda: Surface(prompt="Hi", files={"a": "text"}), "Surface.files: "),
    ],
)
def test_what_a_plug_in_makes_has_its_types(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        make()


def test_a_surface_takes_tools_and_bytes() -> None:
    surface = Surface(prompt="Hi", tools=(ToolSpec(name="a"),), files={"a.png": b"\x89"})
    assert surface.tools[0].name == "a"


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (Task(id="a", prompt="Hi"), "must return a list, not Task"),
        ([{"id": "a"}], "must return Tasks, not dict"),
        ([Task(id="a", prompt="Hi", tools=ToolSpec(name="t"))], "task 'a': Expected `array`"),  # type: ignore[arg-type]
        ([Task(id=5, prompt="Hi")], "task 5: Expected `str`, got `int` - at `$.id`"),  # type: ignore[arg-type]
    ],
)
def test_tasks_have_their_types(tasks: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        checked_tasks(tasks)


def test_the_line_of_the_plug_in_is_told() -> None:
    with (
        pytest.raises(
            EnvironmentFault, match=r"KeyError: 'nots' \(.*test_contract\.py, line \d+\)"
        ),
        boundary(EnvironmentFault, "grading"),
    ):
        _ = {"notes": 1}["nots"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import jsn_", "needs the Python package 'jsn_': pip install jsn_"),
        ("import rollout.harnes", "No module named 'rollout.harnes' (*broken.py, line 1)"),
        ("from rollout.harness import Finsh", "cannot import name 'Finsh'*(*broken.py, line 1)"),
        ("def finish(:", "SyntaxError"),
        (
            "from rollout.suite import Suite\nclass Mine(Suite): ...",
            "Mine does not define environment(), tasks()",
        ),
    ],
)
def test_a_module_that_fails_is_told_from_one_that_is_not_there(
    source: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / f"plugs{abs(hash(source))}"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "broken.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    pattern = re.escape(message).replace(r"\*", ".*")
    with pytest.raises(UsageError, match=pattern):
        load(package.name, "broken", Suite)


def test_modules_that_help_plug_ins_are_not_offered() -> None:
    with pytest.raises(UsageError) as raised:
        load("suites", "clawevl", Suite)
    assert str(raised.value).endswith("known: claweval, office_drills, online_mind2web, webvoyager")
