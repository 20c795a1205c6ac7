"""The journal of a rollout server: leases, limits, restarts, torn lines."""

import errno
import os
from pathlib import Path

import pytest

from rollout.errors import UsageError
from train.server.queue import Conflict, Full, Order, Queue


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def queue(folder: Path, clock: Clock, limit: int = 4) -> Queue:
    return Queue(folder, limit=limit, lease=10.0, clock=clock)


def order(name: str, **fields: object) -> Order:
    return Order(**{"id": name, "task_id": "milk", "n": 2, **fields})  # type: ignore[arg-type]


def test_a_group_is_delivered_again_when_its_lease_is_over(tmp_path: Path, clock: Clock) -> None:
    orders = queue(tmp_path, clock)
    entry = orders.submit(order("a"))
    assert orders.lease(5) == []
    orders.move(entry, "finished")
    assert [e.deliveries for e in orders.lease(5)] == [1]
    assert orders.lease(5) == []
    assert orders.expiry() == 10.0
    clock.now += 10
    assert [e.deliveries for e in orders.lease(5)] == [2]
    orders.ack(entry)
    clock.now += 10
    assert orders.lease(5) == []
    assert orders.expiry() == float("inf")


def test_the_same_order_twice_is_one_order(tmp_path: Path, clock: Clock) -> None:
    orders = queue(tmp_path, clock)
    assert orders.submit(order("a")) is orders.submit(order("a"))
    with pytest.raises(Conflict, match=r"'a'.*other settings"):
        orders.submit(order("a", n=3))


def test_a_full_queue_takes_no_more_until_groups_are_acknowledged(
    tmp_path: Path, clock: Clock
) -> None:
    orders = queue(tmp_path, clock, limit=2)
    first = orders.submit(order("a"))
    orders.submit(order("b"))
    orders.move(first, "finished")
    with pytest.raises(Full):
        orders.submit(order("c"))
    orders.submit(order("b"))  # is there already
    orders.ack(first)
    orders.submit(order("c"))


def test_an_open_group_can_not_be_acknowledged(tmp_path: Path, clock: Clock) -> None:
    orders = queue(tmp_path, clock)
    entry = orders.submit(order("a"))
    with pytest.raises(Conflict, match="queued"):
        orders.ack(entry)


def test_a_restart_loses_nothing(tmp_path: Path, clock: Clock) -> None:
    orders = queue(tmp_path, clock)
    for name in "abcd":
        orders.submit(order(name, seed=7))
    orders.move(orders.entries["a"], "running")
    orders.move(orders.entries["b"], "finished")
    orders.lease(1)
    orders.move(orders.entries["c"], "finished")
    orders.ack(orders.entries["c"])
    orders.move(orders.entries["d"], "failed", "no server")
    orders.close()

    again = queue(tmp_path, clock)
    with pytest.raises(UsageError, match="another process"):
        queue(tmp_path, clock)
    states = {name: entry.state for name, entry in again.entries.items()}
    assert states == {"a": "queued", "b": "finished", "c": "acked", "d": "failed"}
    assert again.entries["d"].reason == "no server"
    assert again.entries["a"].order == order("a", seed=7)
    assert [entry.order.id for entry in again.lease(9)] == ["b", "d"]


def test_a_torn_last_line_is_removed(tmp_path: Path, clock: Clock) -> None:
    orders = queue(tmp_path, clock)
    orders.submit(order("a"))
    orders.close()
    path = tmp_path / "orders.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id":"b","sta')
    again = queue(tmp_path, clock)
    assert list(again.entries) == ["a"]
    assert path.read_bytes() == whole
    again.submit(order("b"))
    again.close()
    assert list(queue(tmp_path, clock).entries) == ["a", "b"]


@pytest.mark.parametrize("room", [0, 10, 50])
def test_a_full_disk_leaves_the_journal_as_it_was(
    room: int, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = queue(tmp_path, clock)
    orders.submit(order("a"))
    left, write = room, os.write

    def nearly_full(file: int, data: bytes) -> int:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        part = bytes(data)[:left]
        left -= len(part)
        return write(file, part)

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(UsageError, match=r"orders\.jsonl: No space left.*make room"):
        orders.submit(order("b"))
    monkeypatch.undo()
    orders.submit(order("c"))
    orders.close()
    assert list(queue(tmp_path, clock).entries) == ["a", "c"]


def test_a_spoilt_line_is_named(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "orders.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match=r"orders\.jsonl, line 1"):
        queue(tmp_path, clock)


def test_of_orders_that_are_over_only_the_last_are_remembered(tmp_path: Path, clock: Clock) -> None:
    orders = Queue(tmp_path, limit=9, lease=10.0, remembered=2, clock=clock)
    for name in "abcd":
        entry = orders.submit(order(name))
        orders.move(entry, "cancelled" if name == "a" else "finished")
        if name in "bc":
            orders.ack(entry)
    assert list(orders.entries) == ["b", "c", "d"]
    assert orders.counts() == {"cancelled": 1, "acked": 2, "finished": 1}
    again = orders.submit(order("a", n=3))  # a new order, for nobody knows the old one
    orders.ack(orders.entries["d"])
    assert orders.entries == {"c": orders.entries["c"], "d": orders.entries["d"], "a": again}
    orders.close()

    after = Queue(tmp_path, limit=9, lease=10.0, remembered=2, clock=clock)
    assert {name: entry.state for name, entry in after.entries.items()} == {
        "c": "acked",
        "d": "acked",
        "a": "queued",
    }
    assert after.counts() == orders.counts()
    after.close()
