"""Worlds: what the agent can reach, time, determinism, and that no two share anything."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from support.claw_tasks import load_task
from support.toys import NoSandbox

from environments.claw import Claw
from environments.claw.clock import Clock, parse_time
from environments.claw.world import ClawWorld
from rollout import plugins
from rollout.environment import Environment
from rollout.types import ToolReply

MAIL = {"to": "a", "subject": "s", "body": "b"}


def test_the_package_exports_one_environment():
    assert plugins.load("environments", "claw", Environment) is Claw


async def test_the_surface_is_the_tasks(write_task):
    folder = write_task(sandbox_files=["fixtures/note.txt"])
    (folder / "fixtures" / "note.txt").write_bytes(b"\x00note")
    task = load_task(folder)
    async with Claw().open(task, 0) as world:
        assert world.surface.prompt == task.prompt
        assert world.surface.tools == task.tools
        assert world.surface.files == {"fixtures/note.txt": b"\x00note"}


async def test_tools_reach_their_endpoint_and_nothing_else(write_task):
    world = ClawWorld(load_task(write_task()), 0)
    assert (await world.call("list_mail", None)).body["total"] == 1
    for name in ("gmail", "reset", "/gmail/audit", ""):
        assert (await world.call(name, {})).status == 404


async def test_an_endpoint_without_a_route_and_one_with_another_method(write_task):
    endpoints = [
        {"tool_name": "list_mail", "url": "http://localhost:9100/gmail/contacts/search"},
        {"tool_name": "get_mail", "url": "http://localhost:9100/gmail/messages", "method": "get"},
        {"tool_name": "send_mail", "url": "http://localhost:9100/gmail/reset"},
    ]
    world = ClawWorld(load_task(write_task(tool_endpoints=endpoints, verify=None)), 0)
    assert await world.call("list_mail", {}) == ToolReply(status=404, body={"detail": "Not Found"})
    assert (await world.call("get_mail", {})).status == 405
    assert (await world.call("send_mail", {})).status == 404


async def test_a_clock_makes_attempts_the_same_to_the_letter(write_task):
    folder = write_task(faults=[{"tool": "*", "kind": "server_error", "rate": 0.5}])

    async def attempt(seed: int) -> Any:
        world = ClawWorld(load_task(folder), seed)
        replies = [await world.call("send_mail", MAIL) for _ in range(20)]
        return replies, await world.snapshot(NoSandbox())

    assert await attempt(1) == await attempt(1)
    assert (await attempt(1))[1]["faults"] != (await attempt(2))[1]["faults"]


async def test_a_clock_orders_the_calls_and_leaves_fixture_dates_alone(write_task):
    world = ClawWorld(load_task(write_task()), 0)
    mail = (await world.call("get_mail", {"message_id": "m1"})).body
    await world.call("send_mail", MAIL)
    assert mail["date"] == "2026-03-01T12:00:00Z"
    left = await world.snapshot(NoSandbox())
    times = [call["timestamp"] for call in left["audit"]["gmail"]["calls"]]
    assert times == ["2026-03-02T09:00:01+00:00", "2026-03-02T09:00:02+00:00"]
    assert left["now"] == "2026-03-02T09:00:02+00:00"


def test_clocks():
    fixed = Clock(parse_time("2026-03-02T17:00:00+08:00"))
    assert fixed.stamp() == "2026-03-02T09:00:00+00:00"
    assert parse_time("2026-03-02") == datetime(2026, 3, 2, tzinfo=UTC)
    real = Clock()
    before = real.now()
    assert real.now() == before
    real.tick()
    assert real.now() >= before
    assert not real.fixed


async def test_worlds_share_nothing(write_task):
    task = load_task(write_task())
    first, second = ClawWorld(task, 0), ClawWorld(task, 0)
    await asyncio.gather(*(first.call("send_mail", MAIL) for _ in range(5)))
    mail = (await first.call("get_mail", {"message_id": "m1"})).body
    mail["labels"].append("tampered")
    assert (await first.call("get_mail", {"message_id": "m1"})).body["labels"] == ["inbox"]
    assert (await second.call("get_mail", {"message_id": "m1"})).body["labels"] == ["inbox"]
    assert (await second.snapshot(NoSandbox()))["audit"]["gmail"]["sent_messages"] == []
    assert (await ClawWorld(task, 0).snapshot(NoSandbox()))["audit"]["gmail"]["calls"] == []


async def test_a_snapshot_is_of_its_moment(write_task):
    world = ClawWorld(load_task(write_task(faults=[{"tool": "*", "kind": "empty", "after": 1}])), 0)
    before = await world.snapshot(NoSandbox())
    await world.call("send_mail", MAIL)
    await world.call("send_mail", MAIL)
    assert before["audit"]["gmail"]["sent_messages"] == []
    assert before["faults"] == []


async def test_two_services_answer_under_their_own_names(write_task):
    folder: Path = write_task(
        services=[
            {"name": "gmail"},
            {"name": "todo_x", "command": "python mock_services/todo/server.py"},
        ],
        tools=[{"name": "list_mail"}, {"name": "list_todos"}],
        tool_endpoints=[
            {"tool_name": "list_mail", "url": "/gmail/messages"},
            {"tool_name": "list_todos", "url": "/todo/tasks"},
        ],
        verify=None,
    )
    (folder / "fixtures" / "todo").mkdir()
    (folder / "fixtures" / "todo" / "tasks.json").write_text("[]")
    world = ClawWorld(load_task(folder), 0)
    assert (await world.call("list_todos", {})).body == {"tasks": [], "total": 0}
    audit = (await world.snapshot(NoSandbox()))["audit"]
    assert [len(audit[name]["calls"]) for name in ("gmail", "todo_x")] == [0, 1]
