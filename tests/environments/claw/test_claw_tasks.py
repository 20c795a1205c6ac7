"""Loading tasks: the schema, the defaults, and one clear line for each mistake."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.claw_tasks import load_task

from environments.claw.loader import NO_GRADER, OFFLINE, load_tasks
from environments.claw.task import ClawTask
from rollout.errors import UsageError
from rollout.types import Step

DATA = Path(os.environ.get("ANYHARNESS_CLAW_EVAL_DATA", "/nowhere"))


def problems(folder: Path) -> list[str]:
    """What the loader says of a task, without the path of its folder."""
    with pytest.raises(UsageError) as caught:
        load_tasks(folder)
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).splitlines()]


def test_a_whole_task(write_task):
    solutions = {
        "reference": {
            "steps": [
                {"call": "list_mail"},
                {
                    "call": "send_mail",
                    "arguments": {"to": "{{1.messages.0.from}}", "subject": "Re", "body": "Yes"},
                    "retry": 2,
                    "expect": {"status": "sent"},
                    "back": 1,
                },
            ],
            "answer": "Done.",
        },
        "wrong": [{"name": "idle", "answer": "Done."}],
    }
    folder = write_task(
        solutions=solutions,
        faults=[{"tool": "send_mail", "kind": "rate_limit", "times": 2}],
        judge_rubric="Is it polite?",
        some_future_key=1,
    )
    task = load_task(folder)
    assert (task.id, task.prompt, task.language) == ("mail", "Answer Ann.", "en")
    assert (task.category, task.difficulty, task.tags) == (
        "communication",
        "easy",
        ("general", OFFLINE),
    )
    assert (task.timeout, task.max_turns) == (120.0, 8)
    assert [tool.group for tool in task.tools] == ["gmail"] * 3
    assert task.endpoints["send_mail"].path == "/gmail/send"
    assert task.clock == "2026-03-02T09:00:00+00:00"
    assert task.faults[0].times == 2
    assert task.rubric == "Is it polite?"
    assert task.skip == ""
    assert task.reference is not None
    assert task.reference.steps[1] == Step(
        call="send_mail",
        arguments={"to": "{{1.messages.0.from}}", "subject": "Re", "body": "Yes"},
        retry=2,
        expect={"status": "sent"},
        back=1,
    )
    assert [wrong.name for wrong in task.wrong] == ["idle"]
    assert msgspec.json.decode(msgspec.json.encode(task), type=ClawTask) == task


def test_claw_evals_own_fields_are_optional_and_its_defaults_hold(write_task):
    folder = write_task(
        environment=None, clock=None, tags=None, prompt={"text": "Hallo"}, verify=None
    )
    task = load_task(folder)
    assert (task.timeout, task.max_turns, task.language) == (300.0, 20, "zh")
    assert (task.clock, task.tags, task.reference) == ("", (OFFLINE,), None)
    assert task.skip == NO_GRADER


def test_fixture_paths_are_relative_to_the_task_or_to_the_parent_of_tasks(write_task):
    for name, path in (("one", "tasks/one/fixtures/own.json"), ("two", "fixtures/own.json")):
        env = {"GMAIL_FIXTURES": path, "PORT": "9100"}
        service = {
            "name": "gmail",
            "command": "python mock_services/gmail/server.py",
            "port": 9100,
            "health_check": "http://localhost:9100/gmail/messages",
            "env": env,
        }
        folder = write_task(name, services=[service], verify=None)
        (folder / "fixtures" / "own.json").write_text("[]")
        assert load_task(folder).services[0].env == {
            "GMAIL_FIXTURES": str(folder / "fixtures" / "own.json")
        }


def test_the_folder_of_tasks_may_have_any_name(write_task, tmp_path):
    env = {"GMAIL_FIXTURES": "tasks/mail/fixtures/gmail/inbox.json"}
    moved = write_task(services=[{"name": "gmail", "env": env}]).parent.rename(tmp_path / "mine")
    inbox = moved / "mail" / "fixtures" / "gmail" / "inbox.json"
    assert load_tasks(moved)[0].services[0].env == {"GMAIL_FIXTURES": str(inbox)}
    inbox.unlink()
    assert str(inbox) in problems(moved / "mail")[0]


def test_a_service_may_have_another_name_than_its_kind(write_task):
    service = {"name": "mail_2", "command": "python mock_services/gmail/server.py"}
    spec = load_task(write_task(services=[service])).services[0]
    assert (spec.name, spec.kind) == ("mail_2", "gmail")


def test_files_for_the_workspace(write_task):
    folder = write_task(sandbox_files=["fixtures/note.txt", "tasks/other/fixtures/more.txt"])
    (folder / "fixtures" / "note.txt").write_text("x")
    other = folder.parent / "other" / "fixtures"
    other.mkdir(parents=True)
    (other / "more.txt").write_text("y")
    assert load_task(folder).files == {
        "fixtures/note.txt": str(folder / "fixtures" / "note.txt"),
        "tasks/other/fixtures/more.txt": str(other / "more.txt"),
    }


def test_the_fingerprint_covers_every_file_and_nothing_else(write_task):
    folder = write_task()
    before = load_task(folder).fingerprint
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "verify.pyc").write_bytes(b"x")
    assert load_task(folder).fingerprint == before
    (folder / "verify.py").write_text("# changed\n" + (folder / "verify.py").read_text())
    assert load_task(folder).fingerprint != before


def test_one_error_lists_the_problems_of_all_tasks(write_task):
    first = write_task("a", prompt={"language": "en"}, environment={"timeout_seconds": "soon"})
    second = write_task("b", task_id="c")
    write_task("d")
    with pytest.raises(UsageError) as caught:
        load_tasks(first.parent)
    assert str(caught.value).splitlines() == [
        f"{first}/task.yaml: prompt.text: missing; add it",
        f"{first}/task.yaml: environment.timeout_seconds: is 'soon'; it should be a valid number, "
        "unable to parse string as a number",
        f"{second}/task.yaml: task_id: is 'c'; name it like its folder, b",
    ]


def test_the_folder_of_one_task_is_that_task(write_task):
    folder = write_task("a")
    write_task("b")
    assert [task.id for task in load_tasks(folder)] == ["a"]


def test_a_folder_without_tasks(tmp_path: Path):
    with pytest.raises(UsageError, match=r"no \*/task.yaml; name the folder that holds"):
        load_tasks(tmp_path)


def test_yaml_that_is_none(write_task):
    folder = write_task()
    (folder / "task.yaml").write_text("task_id: [\n")
    assert problems(folder)[0].startswith("task.yaml: line 2: ")
    (folder / "task.yaml").write_bytes(b"\xff\xfe")
    assert "write it as UTF-8 YAML" in problems(folder)[0]
    (folder / "task.yaml").write_text("just text")
    assert problems(folder)[0].startswith("task.yaml: (the whole file): is 'just text'")


TOOL = {"name": "list_mail"}
ENDPOINT = {"tool_name": "list_mail", "url": "/gmail/messages"}

MISTAKES: list[tuple[dict[str, Any], str]] = [
    (
        {"services": [{"name": "gmial"}], "tools": None, "tool_endpoints": None},
        "services[0].name: no service 'gmial'; did you mean 'gmail'?",
    ),
    (
        {"services": [{"name": "gmail"}, {"name": "gmail"}]},
        "services[1].name: gmail is there twice; remove one",
    ),
    (
        {"tools": [TOOL, TOOL], "tool_endpoints": [ENDPOINT]},
        "tools[1].name: 'list_mail' is there twice; rename or remove one",
    ),
    (
        {"tools": [TOOL, {"name": "x"}], "tool_endpoints": [ENDPOINT]},
        "tools[1].name: 'x' has no endpoint; add it to tool_endpoints",
    ),
    (
        {"tools": [TOOL], "tool_endpoints": [ENDPOINT, {**ENDPOINT, "tool_name": "list_mial"}]},
        "tool_endpoints[1].tool_name: no tool 'list_mial'; did you mean 'list_mail'?",
    ),
    (
        {"tools": [TOOL], "tool_endpoints": [{**ENDPOINT, "url": "http://h:1/crm/customers"}]},
        "tool_endpoints[0].url: no service serves '/crm/customers'; add the service to services",
    ),
    (
        {"tools": [TOOL], "tool_endpoints": [{**ENDPOINT, "url": "/gmail/message"}]},
        "tool_endpoints[0].url: no route '/gmail/message'; did you mean '/gmail/messages'?",
    ),
    (
        {"sandbox_files": ["../mail/fixtures/gmail/inbox.json"]},
        "sandbox_files[0]: '../mail/fixtures/gmail/inbox.json' leaves the workspace; "
        "use a path below the task",
    ),
    (
        {"sandbox_files": ["verify.py"]},
        "sandbox_files[0]: 'verify.py' is not for the agent to see; remove it",
    ),
    (
        {"sandbox_files": ["a.txt"]},
        "sandbox_files[0]: there is no file a.txt; add it",
    ),
    (
        {"faults": [{"tool": "x", "kind": "delay"}]},
        "faults[0].tool: no tool 'x'; known: *, list_mail, get_mail, send_mail",
    ),
    (
        {"faults": [{"service": "gmai", "kind": "delay"}]},
        "faults[0].service: no service 'gmai'; did you mean 'gmail'?",
    ),
    (
        {"faults": [{"tool": "*", "service": "*", "kind": "delay"}]},
        'faults[0]: name either a tool or a service; "*" means all of them',
    ),
    (
        {"faults": [{"tool": "*", "kind": "delay", "every": 2}]},
        "faults[0].every: unknown key; correct or remove it",
    ),
    (
        {"faults": [{"tool": "*", "kind": "explode"}]},
        "faults[0].kind: is 'explode'; it should be 'rate_limit', 'server_error', "
        "'permission_denied', 'delay', 'empty' or 'lost_write'",
    ),
    (
        {"faults": [{"tool": "*", "kind": "empty", "rate": 2}]},
        "faults[0].rate: is 2; it should be less than or equal to 1",
    ),
    (
        {"environment": {"timeout_seconds": -3}},
        "environment.timeout_seconds: is -3; it should be greater than 0",
    ),
    ({"prompt": "Do it"}, "prompt: is 'Do it'; it should be a mapping (key: value)"),
    ({"clock": "noon"}, "clock: is 'noon'; write it like 2026-03-03T08:30:00+01:00"),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES)
def test_a_mistake_is_one_line_with_field_and_remedy(write_task, changes, message):
    assert problems(write_task(**changes)) == [f"task.yaml: {message}"]


def test_mistakes_in_solutions(write_task):
    folder = write_task(
        solutions={
            "reference": {"steps": [{"call": "send_mial"}]},
            "wrong": [
                {
                    "name": "w",
                    "steps": [{"call": "list_mail", "arguments": {"a": ["{{1.x}}"]}, "back": 3}],
                }
            ],
        }
    )
    assert problems(folder) == [
        "solutions.yaml: reference.steps[0].call: no tool 'send_mial'; did you mean 'send_mail'?",
        "solutions.yaml: wrong[0].steps[0].arguments: refers to step 1; name an earlier one, "
        "counted from 1",
        "solutions.yaml: wrong[0].steps[0].back: only 0 steps come before; make it 0 at most",
    ]
    (folder / "solutions.yaml").write_text("reference: {stepz: []}")
    assert problems(folder) == [
        "solutions.yaml: reference.stepz: unknown key; correct or remove it"
    ]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"clok": "2026-03-03"}, "clok: unknown key; did you mean clock?"),
        (
            {"environment": {"timeout_second": 5}},
            "environment.timeout_second: unknown key; did you mean timeout_seconds?",
        ),
        (
            {"services": [{"name": "gmail", "comand": ""}]},
            "services[0].comand: unknown key; did you mean command?",
        ),
    ],
)
def test_a_misspelt_key_is_a_mistake_where_the_task_is_ours(write_task, changes, says):
    folder = write_task(**changes, scoring_components=[])
    assert problems(folder) == [f"task.yaml: {says}"]
    (folder / "verify.py").unlink()
    load_tasks(folder)


@pytest.mark.parametrize("name", ["task.yml", "verify.py", "solutions.yaml"])
def test_a_folder_without_its_task_is_not_passed_over(write_task, name):
    folder = write_task().parent
    (folder / "B2_other").mkdir()
    (folder / "B2_other" / name).touch()
    with pytest.raises(UsageError, match=r"B2_other: no task\.yaml there; write it, or remove"):
        load_tasks(folder)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def verify(e)", "SyntaxError"),
        ("import numpy\ndef verify(e): ...\n", "numpy is neither evidence nor stdlib"),
        ("from rollout.types import Task\n", "line 1: rollout.types is neither"),
        ("from . import x\n", "ImportError: line 1: . is neither"),
        ("def check(e): ...\n", "no function verify(e: Evidence) -> Score"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
    ],
)
def test_a_verify_that_could_grade_nothing_is_told_before_anything_runs(write_task, text, says):
    folder = write_task()
    (folder / "verify.py").write_text(text)
    with pytest.raises(UsageError, match=r"verify\.py: .*mend it") as told:
        load_tasks(folder)
    assert says in str(told.value)


def test_a_missing_fixture_is_a_mistake_where_verify_needs_it(write_task):
    folder = write_task(inbox={})
    path = folder / "fixtures" / "gmail" / "inbox.json"
    assert problems(folder) == [f"task.yaml: services[0]: {path}: must be a JSON list of objects"]
    path.write_text('[{"message_id": "m"}]')
    assert "[0]: add 'from', 'subject', 'date'" in problems(folder)[0]
    path.write_text(
        '[{"message_id": "m", "from": "", "subject": "", "date": "?", "is_read": 1, "labels": []}]'
    )
    assert problems(folder)[0].endswith(
        "is '?'; write it like 2026-03-03T08:30:00+01:00; correct the fixture"
    )
    (folder / "verify.py").unlink()
    path.unlink()
    assert load_task(folder).skip == (
        f"incomplete: services[0]: {path}: No such file or directory; write [] into it for an empty one"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"services": [{"name": "gmail"}, {"name": "web_real"}]}, "needs the real web"),
        ({"user_agent": {"enabled": True}}, "simulated user"),
        ({"env_snapshot_commands": ["ffprobe /workspace/clip.mp4"]}, "container image"),
        ({"sandbox_files": ["fixtures/clip.mp4"], "verify": None}, "video"),
    ],
)
def test_what_cannot_run_here_is_skipped_with_its_reason(write_task, changes, reason):
    assert reason in load_task(write_task(**changes)).skip


@pytest.mark.skipif(
    not (DATA / "tasks").is_dir(),
    reason="no claw-eval task data: set ANYHARNESS_CLAW_EVAL_DATA to a folder that holds its tasks/",
)
def test_claw_evals_own_tasks_load():
    tasks = load_tasks(DATA / "tasks")
    assert [task.id for task in tasks] == sorted(path.name for path in (DATA / "tasks").iterdir())
    ready = [task for task in tasks if not task.skip]
    assert all(task.judged for task in ready)
    assert len(ready) > len(tasks) / 2
    for task in ready:
        assert set(task.endpoints) == {tool.name for tool in task.tools}
