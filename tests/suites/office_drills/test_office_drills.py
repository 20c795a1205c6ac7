"""Drills: what they ask can be done, is graded by what was done, and splits share nothing."""

import re
from pathlib import Path

import pytest
from support.solutions import played

from rollout.errors import UsageError
from rollout.types import JsonObject, Outcome, Solution
from suites.main import main
from suites.office_drills import OfficeDrills
from suites.office_drills.drills import FAMILIES, DrillTask, drill
from suites.office_drills.grading import Drills
from suites.office_drills.office import SPLITS


async def attempt(task: DrillTask, solution: Solution | None) -> tuple[float, bool, str]:
    assert solution is not None
    grade, _ = await played(Drills(), task, solution)
    return grade.score, grade.passed, "; ".join(grade.notes)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("split", SPLITS)
async def test_the_reference_passes(split: str, family: str) -> None:
    for number in range(40):
        task = drill(split, family, number)
        assert await attempt(task, task.reference) == (1.0, True, "")


@pytest.mark.parametrize("family", FAMILIES)
async def test_another_drills_solution_fails(family: str) -> None:
    task, other = drill("train", family, 0), drill("train", family, 1)
    score, passed, notes = await attempt(task, other.reference)
    assert score < 1
    assert not passed
    assert notes


async def test_a_second_record_spoils_it() -> None:
    task = drill("train", "order", 0)
    assert task.reference is not None
    steps = task.reference.steps
    twice = Solution(name="twice", steps=(*steps, steps[-1]), answer=task.reference.answer)
    assert await attempt(task, twice) == (
        0.1,
        False,
        "not met: inventory.orders has one record, not 2",
    )


async def test_wrong_fields_and_a_silent_answer_cost_a_part() -> None:
    task = drill("train", "mail", 0)
    assert task.reference is not None
    search, send = task.reference.steps
    wrong = type(send)(call=send.call, arguments={**send.arguments, "body": "1"})
    score, passed, notes = await attempt(task, Solution(name="w", steps=(search, wrong)))
    assert score == pytest.approx(0.6)
    assert not passed
    assert "right body" in notes
    assert "the answer names" in notes


def test_drills_are_the_same_each_time_and_many() -> None:
    assert drill("train", "mail", 7) == drill("train", "mail", 7)
    prompts = {drill("train", family, n).prompt for family in FAMILIES for n in range(500)}
    assert len(prompts) > 1500


def test_splits_share_no_names_and_no_numbers() -> None:
    train, held_out = ({word for n in range(300) for word in words(split, n)} for split in SPLITS)
    assert len(train) > 1000
    assert not train & held_out


def words(split: str, number: int) -> set[str]:
    """The names, numbers and days of a drill's rows and expectations."""
    task = drill(split, list(FAMILIES)[number % len(FAMILIES)], number)
    rows = [row for rows in task.rows.values() for row in rows]
    text = str([rows, [one.fields for one in task.expected]])
    text = re.sub(r"\d\d:00|T\d\d|'quantity': \d\b", "", text)
    return {*re.findall(r"\b[A-Z][a-z]{3}(?=\d|\b)|\d{4}-\d\d-\d\d", text), *ids(rows)}


def ids(rows: list[JsonObject]) -> set[str]:
    return {value for row in rows for name, value in row.items() if name.endswith("_id")}


def test_it_is_a_suite_like_any_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--count", "8", "--attempts", "2", "--out", str(tmp_path / "run"), "--quiet", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(OfficeDrills(), argv)
    assert ended.value.code == 0
    assert f'"{Outcome.PASSED}":16' in capsys.readouterr().out.replace(" ", "")


def test_wrong_options_are_named() -> None:
    suite = OfficeDrills()
    with pytest.raises(UsageError, match="--data"):
        suite.tasks(Path("x"))
    with pytest.raises(SystemExit):
        main(suite, ["--families", "mail,singing", "--list"])
