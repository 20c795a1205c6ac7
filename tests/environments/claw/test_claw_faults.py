"""Fault injection: each kind, which calls it hits, and that it is listed."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.claw_tasks import load_task
from support.toys import NoSandbox

from environments.claw import Claw
from environments.claw.faults import Fault, FaultPlan, emptied
from environments.claw.world import ClawWorld
from rollout.types import ToolReply

MAIL = {"to": "a", "subject": "s", "body": "b"}


async def play(folder: Path, *calls: tuple[str, Any], seed: int = 0) -> tuple[list[ToolReply], Any]:
    world = ClawWorld(load_task(folder), seed)
    replies = [await world.call(name, arguments) for name, arguments in calls]
    return replies, await world.snapshot(NoSandbox())


@pytest.mark.parametrize(
    ("kind", "status", "error"),
    [
        ("rate_limit", 429, "rate_limit_exceeded"),
        ("server_error", 500, "internal_server_error"),
        ("permission_denied", 403, "permission_denied"),
    ],
)
async def test_refusals_answer_in_the_services_place(write_task, kind, status, error):
    folder = write_task(faults=[{"tool": "send_mail", "kind": kind}])
    replies, left = await play(folder, ("list_mail", {}), ("send_mail", MAIL), ("send_mail", MAIL))
    assert [reply.status for reply in replies] == [200, status, 200]
    assert replies[1].body["error"] == error
    assert len(left["audit"]["gmail"]["sent_messages"]) == 1
    assert len(left["audit"]["gmail"]["calls"]) == 2
    assert left["faults"] == [
        {
            "kind": kind,
            "call": 1,
            "tool": "send_mail",
            "service": "gmail",
            "timestamp": "2026-03-02T09:00:02+00:00",
        }
    ]


async def test_rate_limit_says_when_to_come_back(write_task):
    folder = write_task(faults=[{"tool": "*", "kind": "rate_limit"}])
    replies, _ = await play(folder, ("list_mail", {}))
    assert replies[0].body["retry_after_seconds"] == 2


async def test_lost_write_says_success_and_changes_nothing(write_task):
    folder = write_task(faults=[{"tool": "send_mail", "kind": "lost_write"}])
    replies, left = await play(folder, ("send_mail", MAIL), ("send_mail", {**MAIL, "to": "b"}))
    assert [reply.body["status"] for reply in replies] == ["sent", "sent"]
    assert [m["to"] for m in left["audit"]["gmail"]["sent_messages"]] == ["b"]
    assert [fault["kind"] for fault in left["faults"]] == ["lost_write"]


async def test_empty_keeps_the_shape_of_a_list_reply(write_task):
    folder = write_task(faults=[{"service": "gmail", "kind": "empty", "times": 2}])
    calls = [("list_mail", {}), ("get_mail", {"message_id": "m1"}), ("list_mail", {})]
    replies, left = await play(folder, *calls)
    assert replies[0] == ToolReply(body={"messages": [], "total": 0})
    assert replies[1] == ToolReply(body={})
    assert replies[2].body["total"] == 1
    assert len(left["audit"]["gmail"]["calls"]) == 1


async def test_empty_leaves_a_refused_body_as_it_is(write_task):
    folder = write_task(faults=[{"tool": "get_mail", "kind": "empty"}])
    replies, _ = await play(folder, ("get_mail", {}))
    assert replies[0].status == 422


def test_emptied_keeps_what_is_no_list():
    assert emptied({"events": [1], "total": 1, "user": "ann"}) == {
        "events": [],
        "total": 0,
        "user": "ann",
    }


async def test_delay_answers_later_and_rightly(write_task, monkeypatch):
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    folder = write_task(faults=[{"tool": "*", "kind": "delay", "seconds": 1.5}])
    replies, left = await play(folder, ("list_mail", {}), ("list_mail", {}))
    assert slept == [1.5]
    assert replies[0] == replies[1]
    assert len(left["faults"]) == 1


def hits(*faults: Fault, calls: int, seed: int = 0) -> list[str]:
    plan = FaultPlan(faults, seed)
    found = [plan.next("t", "s") for _ in range(calls)]
    return [fault.kind if fault else "" for fault in found]


def test_times_and_after_count_matching_calls():
    fault = Fault(tool="t", kind="delay", times=2, after=1)
    assert hits(fault, calls=5) == ["", "delay", "delay", "", ""]
    assert hits(Fault(tool="other", kind="delay"), calls=2) == ["", ""]
    assert hits(Fault(service="s", kind="delay", times=1), calls=2) == ["delay", ""]
    assert hits(Fault(service="other", kind="delay"), calls=1) == [""]


def test_a_later_fault_waits_until_the_earlier_one_is_used_up():
    first, second = (
        Fault(tool="*", kind="rate_limit", times=1),
        Fault(tool="t", kind="empty", times=1),
    )
    assert hits(first, second, calls=3) == ["rate_limit", "empty", ""]


def test_rate_is_decided_by_the_seed():
    fault = Fault(tool="*", kind="server_error", rate=0.3)
    once = hits(fault, calls=2000, seed=1)
    assert once == hits(fault, calls=2000, seed=1)
    assert once != hits(fault, calls=2000, seed=2)
    assert 500 < sum(map(bool, once)) < 700


def test_rules_have_random_numbers_of_their_own():
    rated = Fault(tool="t", kind="empty", rate=0.5)
    other = Fault(tool="other", kind="delay", rate=0.5)
    assert hits(rated, other, calls=50) == hits(rated, calls=50)


def test_how_often_a_fault_hits_by_default(write_task):
    rules = [
        {"tool": "*", "kind": "delay"},
        {"tool": "*", "kind": "delay", "rate": 0.5},
        {"tool": "*", "kind": "delay", "rate": 0.5, "times": 3},
    ]
    faults = load_task(write_task(faults=rules)).faults
    assert [(fault.times, fault.rate) for fault in faults] == [(1, 1.0), (0, 0.5), (3, 0.5)]


def drawn(rate: float, seed: int, calls: int = 2000) -> list[Fault | None]:
    plan = FaultPlan((), seed, rate)
    return [plan.next("get_mail", "gmail") for _ in range(calls)]


def test_an_error_rate_is_seeded_and_mixed_as_in_claw_eval():
    assert drawn(0.2, 1) == drawn(0.2, 1) != drawn(0.2, 2)
    found = [fault for fault in drawn(0.2, 1) if fault]
    assert len(found) / 2000 == pytest.approx(0.2, abs=0.03)
    kinds = Counter(fault.kind for fault in found)
    assert kinds["rate_limit"] / len(found) == pytest.approx(0.35, abs=0.08)
    assert kinds["server_error"] / len(found) == pytest.approx(0.35, abs=0.08)
    assert kinds["delay"] / len(found) == pytest.approx(0.30, abs=0.08)
    assert all(2.0 <= fault.seconds <= 4.0 for fault in found)
    assert drawn(0.0, 1, 9) == [None] * 9


async def test_an_error_rate_is_an_environments_own(write_task):
    task = load_task(write_task())
    async with Claw(error_rate=1.0).open(task, 8) as world:
        replies = [await world.call("send_mail", MAIL) for _ in range(2)]
        left = await world.snapshot(NoSandbox())
    assert [reply.status for reply in replies] == [500, 429]
    assert left["audit"]["gmail"]["sent_messages"] == []
    assert [fault["kind"] for fault in left["faults"]] == ["server_error", "rate_limit"]
