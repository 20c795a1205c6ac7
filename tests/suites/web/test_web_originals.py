"""The web benchmarks' own files: versions, patches, dates, what becomes of a task."""

import json
from datetime import date

import pytest

from rollout.errors import UsageError
from suites.command.options import parse
from suites.online_mind2web import OnlineMind2Web
from suites.online_mind2web.original import load as load_tasks
from suites.webvoyager import WebVoyager
from suites.webvoyager.dates import past
from suites.webvoyager.original import load as load_questions

TODAY = date(2026, 6, 15)


def task(number, **more):
    line = {
        "task_id": f"{number:032x}",
        "confirmed_task": f"Task {number}",
        "website": "https://shop.example/",
        "reference_length": 4,
        "level": "easy",
    }
    return line | more


def question(name, number, text):
    web = f"https://{name.lower().replace(' ', '')}.example/"
    return {"web_name": name, "id": f"{name}--{number}", "ques": text, "web": web}


QUESTIONS = [
    question("Booking", 0, "A hotel for March 3, 2024"),
    question("ArXiv", 1, "A paper of March 3, 2024"),
    question("Google Map", 2, "The nearest one"),
]
ANSWERS = {
    "Booking": {"notice": "", "answers": [{"id": 0, "type": "possible", "ans": "Some hotel"}]},
    "ArXiv": {"notice": "", "answers": [{"id": 1, "type": "golden", "ans": "2403.1"}]},
}


def lines(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def tasks(tmp_path):
    rows = [task(0), task(1, level="hard", website="shop.example/a"), task(2)]
    rows[2]["task_id"] += "_110325"
    path = tmp_path / "Online_Mind2Web.json"
    path.write_text(json.dumps(rows))
    return path


@pytest.fixture
def questions(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/reference_answer.json").write_text(json.dumps(ANSWERS))
    return lines(tmp_path / "data/WebVoyager_data.jsonl", QUESTIONS)


def test_a_version_is_told_by_digests_and_by_the_ids_that_were_replaced(tasks):
    loaded = load_tasks(tasks)
    assert loaded == load_tasks(tasks.parent)
    assert loaded.version == "unknown, 1 tasks replaced until 2025-11-03"
    assert f"sha256 {loaded.records.sha256[:12]}, ids {loaded.ids[:12]}" in loaded.note
    assert loaded.note.endswith("3 of the benchmark's 300")


def test_a_task_starts_at_its_site_and_needs_a_judge(tasks):
    easy, hard, _ = load_tasks(tasks).tasks(12)
    assert (easy.start, hard.start) == ("https://shop.example/", "https://shop.example/a")
    assert (hard.category, hard.difficulty, hard.max_turns, hard.judged) == (
        *("hard", "hard"),
        *(12, True),
    )
    assert easy.fingerprint != hard.fingerprint
    assert {"browser_click", "browser_screenshot"} <= {tool.name for tool in easy.tools}


def test_questions_hold_their_reference_answers(questions):
    loaded = load_questions(questions.parent.parent)
    hotel, paper, place = loaded.tasks(30, today=TODAY)
    assert (hotel.tags, paper.tags, place.tags) == (("possible", "dated"), ("golden",), ())
    assert paper.rubric == ("The answer agrees with: 2403.1",)
    assert (hotel.prompt, hotel.start) == ("A hotel for March 3, 2024", "https://booking.example/")
    versions, dated = loaded.notes(TODAY)
    assert "an unknown version" in versions
    assert dated.startswith("1 questions ask for a date that is past")
    [blank, *_] = loaded.tasks(30, "blank", TODAY)
    assert blank.start == "about:blank"
    assert blank.prompt == "On https://booking.example/: A hotel for March 3, 2024"


def test_a_patch_says_which_questions_remain_and_in_which_words(questions, tmp_path):
    newer = question("Booking", 0, "A hotel for March 3, 2027")
    patch = lines(tmp_path / "patch.jsonl", [newer, QUESTIONS[2]])
    loaded = load_questions(questions, patch)
    assert [t.prompt for t in loaded.tasks(30)] == [newer["ques"], "The nearest one"]
    [_, patched] = loaded.notes(TODAY)
    assert patched.endswith("2 remain, 1 removed, 1 reworded")
    assert loaded.source()["patch_sha256"] != loaded.source()["sha256"]
    lines(patch, [QUESTIONS[2], question("Apple", 7, "x")])
    with pytest.raises(UsageError, match=r"line 2: .* has no question 'Apple--7'"):
        load_questions(questions, patch)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("leaving on 2026-06-14", "2026-06-14"),
        ("leaving on 2026-06-15", ""),
        ("on January 25, 2024 and back", "January 25, 2024"),
        ("on 2nd Feb 2026", "2nd Feb 2026"),
        ("in June 2026 or May 2026", "May 2026"),
        ("in June 2026", ""),
        ("on December 25", ""),
        ("from 2026-02-31 or 2026-13-01", ""),
        ("the 2022 World Cup", ""),
    ],
)
def test_dates_that_are_past(text, found):
    assert past(text, TODAY) == found


@pytest.mark.parametrize("kind", [OnlineMind2Web, WebVoyager])
def test_defaults_are_explicit(kind, tasks, questions):
    suite = kind()
    data = tasks if kind is OnlineMind2Web else questions
    options = parse(suite, ["--data", str(data), "--max-steps", "9"])
    assert options.harness == "molmoweb"
    assert {task.max_turns for task in suite.tasks(options.data)} == {9}
    told = suite.fingerprint(options.data)
    expected = "webjudge" if kind is OnlineMind2Web else "webvoyager"
    assert (told["protocol"], told["max_steps"]) == (expected, 9)
    assert suite.environment().fingerprint()["protocol"]["name"] == expected
    assert any("prompts: own" in line for line in suite.notes())


def test_other_protocols_are_taken_by_name(questions):
    suite = WebVoyager()
    parse(suite, ["--protocol", "agenttrek:k=3", "--data", str(questions)])
    assert suite.environment().fingerprint()["protocol"]["name"] == "agenttrek"
    with pytest.raises(UsageError, match="agenttrek"):
        parse(suite, ["--protocol", "agenttrack"])
