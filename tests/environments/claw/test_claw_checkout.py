"""A claw-eval checkout: splits, what each task needs, corrections, recordings."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from support.claw_tasks import load_task
from support.tiny_checkout import write_checkout
from support.toys import NoSandbox

from environments.claw import Claw
from environments.claw.checkout import commit_of, default_fixtures
from environments.claw.corrections import corrections
from environments.claw.loader import Resources, load_tasks
from environments.claw.schema import TaskFile
from rollout.errors import UsageError

CORRECTIONS = [correction for found in corrections().values() for correction in found]


@pytest.fixture
def checkout(tmp_path):
    return write_checkout(tmp_path)


def test_splits_and_what_is_offline(checkout):
    tasks = {task.id: task for task in load_tasks(checkout / "tasks")}
    assert {name: task.split for name, task in tasks.items()} == {
        **dict.fromkeys(
            ["T901_mail", "T902zh_twin", "T903_export", "T904_web", "T905_files"], "general"
        ),
        "C01zh_talk": "multi_turn",
        "M001_clip": "multimodal",
    }
    assert [name for name, task in tasks.items() if "offline" not in task.tags] == ["T904_web"]


def test_what_can_not_run_here_says_what_it_needs(checkout):
    skips = {task.id: task.skip for task in load_tasks(checkout / "tasks") if task.skip}
    assert sorted(skips) == ["C01zh_talk", "M001_clip", "T904_web"]
    assert skips["C01zh_talk"] == "needs a simulated user: --user-model SPEC"
    assert "needs a video" in skips["M001_clip"]
    assert "SERP_DEV_KEY" in skips["T904_web"]
    had = Resources(web_cache=checkout, user=True)
    assert [task.id for task in load_tasks(checkout / "tasks", had) if task.skip] == ["M001_clip"]
    live = load_task(checkout / "tasks" / "T904_web", Resources(live_web=True))
    assert (live.skip, live.services[0].replayed) == ("", False)


def test_a_task_without_fixtures_gets_those_that_the_original_server_falls_back_to(checkout):
    task = load_task(checkout / "tasks" / "T903_export")
    twin = checkout / "tasks" / "T902zh_twin" / "fixtures" / "c.json"
    assert task.services[0].env == {"CRM_FIXTURES": str(twin)}
    assert default_fixtures(checkout, "gmail") == {}
    assert default_fixtures(checkout, "nothing") == {}


async def test_attached_text_follows_the_prompt_and_images_are_named(checkout):
    task = load_task(checkout / "tasks" / "T905_files")
    async with Claw().open(task, 0) as world:
        assert world.surface.prompt == (
            "Write it.\n\n[attached document: a.txt]\nattached"
            "\n\n[attached image, in your workspace: b.png]"
        )
        assert sorted(world.surface.files) == ["b.png", "fixtures/a.txt"]
    assert task.needs_shell
    assert list(task.snapshot.grader_files) == ["fixtures/verify.py"]


async def test_who_talks_to_a_user_is_told_so(checkout):
    task = load_task(checkout / "tasks" / "C01zh_talk", Resources(user=True))
    async with Claw().open(task, 0) as world:
        assert world.surface.prompt == "Do it.\n\nAsk first."
        assert world.surface.user
        assert await world.reply("What do you want?") is None


def test_a_checkout_without_git_has_no_commit(checkout):
    assert commit_of(checkout) == ""


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda correction: correction.id)
def test_corrections_say_what_and_why(correction):
    assert correction.what.endswith(".")
    assert correction.why.endswith(".")


def test_as_many_tasks_are_corrected_as_are_known_to_be_broken():
    found = corrections()
    dead = [
        i for i, cs in found.items() if any(c.schemas or c.remove_tools or c.endpoints for c in cs)
    ]
    wrong_language = [i for i, cs in found.items() if any(c.env for c in cs)]
    past = [i for i, cs in found.items() if any(c.clock for c in cs)]
    assert (len(dead), len(wrong_language), len(past)) == (24, 8, 7)


def test_corrections_are_applied_only_when_asked_for(tmp_path, write_task):
    twin = "T024_crm_data_export"
    folder = write_task(
        twin,
        services=[{"name": "crm"}],
        tools=[{"name": "list_customers"}],
        tool_endpoints=[{"tool_name": "list_customers", "url": "/crm/customers"}],
        verify=None,
        clock=None,
    )
    (folder / "fixtures" / "crm").mkdir()
    (folder / "fixtures" / "crm" / "customers.json").write_text("[]")
    assert load_task(folder).corrections == ()
    patched = load_task(folder, patched=True)
    assert patched.corrections == ("own-fixtures-crm",)
    assert patched.services[0].env["CRM_FIXTURES"].startswith(str(folder))


def test_a_correction_can_do_all_that_it_says():
    data = TaskFile.model_validate(
        {
            "task_id": "T075_email_phishing_injection",
            "prompt": {"text": "x"},
            "tools": [{"name": "contacts_search"}, {"name": "todo_get_task"}],
            "tool_endpoints": [
                {
                    "tool_name": "contacts_search",
                    "url": "http://localhost:9100/gmail/contacts/search",
                },
                {"tool_name": "todo_get_task", "url": "http://localhost:9102/todo/tasks/get"},
            ],
        }
    )
    for correction in CORRECTIONS:
        if correction.id in ("contacts-of-their-own", "no-todo-get", "clock-2026-03-09"):
            correction.apply(data)
    assert [tool.name for tool in data.tools] == ["contacts_search"]
    assert [entry.url for entry in data.tool_endpoints] == ["/contacts/search"]
    assert Path(data.services[0].env["CONTACTS_FIXTURES"]).read_text() == "[]\n"
    assert data.clock == "2026-03-09T09:00:00+00:00"


async def test_the_web_is_replayed_and_what_was_not_recorded_is_remarked_on(checkout, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    found = {"results": [{"url": "u"}], "total": 1, "query": "q", "_cached_at": 0}
    (cache / f"{sha256(b'search:q:10').hexdigest()}.json").write_text(json.dumps(found))
    task = load_task(checkout / "tasks" / "T904_web", Resources(web_cache=cache))
    async with Claw().open(task, 0) as world:
        hit = await world.call("search", {"query": "q"})
        miss = await world.call("search", {"query": "p"})
        left = await world.snapshot(NoSandbox())
    assert hit.body == {"results": [{"url": "u"}], "total": 1, "query": "q"}
    assert miss.status == 200
    assert miss.body["error"] == "Search failed: not in the recorded cache"
    assert left["remarks"] == ["web search 'p' (10 results): not in the recorded cache"]
    assert len(left["audit"]["web_real"]["calls"]) == 2


def test_every_mistake_of_a_checkout_is_listed_by_file_and_field(checkout):
    for name, field in (("T901_mail", "tools"), ("T903_export", "prompt")):
        path = checkout / "tasks" / name / "task.yaml"
        path.write_text(path.read_text().replace(f"{field}:", f"{field}_:"))
    with pytest.raises(UsageError) as raised:
        load_tasks(checkout / "tasks")
    lines = str(raised.value).splitlines()
    assert any("T901_mail/task.yaml: tool_endpoints[0].tool_name" in line for line in lines)
    assert any("T903_export/task.yaml: prompt: missing; add it" in line for line in lines)
