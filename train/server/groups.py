"""Running the groups that a rollout server was asked for, and writing them out for a trainer."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec

from rollout.errors import RolloutError, UsageError
from rollout.runner import Runner
from rollout.store import EpisodeStore
from rollout.text import one_line
from rollout.types import JsonObject
from train.credit import CreditRules, assign
from train.mix import draw
from train.rows import rl_rows
from train.runs import ReadyHarness, open_store
from train.samples import MissingTokenIds, Report, Rules, build_samples
from train.server.queue import Entry, Order, Queue

__all__ = ["DeliveryRules", "GroupWorker", "payload"]

GROUPS = "groups"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeliveryRules:
    """What becomes of episodes on their way to a trainer."""

    samples: Rules = field(default_factory=Rules)
    credit: CreditRules = field(default_factory=CreditRules)
    gamma: float = 1.0


@dataclass
class GroupWorker:
    """Works on a queue's orders, the oldest first."""

    queue: Queue
    harnesses: Sequence[ReadyHarness]
    folder: Path
    concurrency: int
    discard: bool = False
    """Whether the records of acknowledged and cancelled groups are removed."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    """Notified when a group is ready, or an order came or went."""
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _fault: RolloutError | None = None
    """Why the disk takes no more. Every group would fail of it: they wait for the next start."""

    def harness(self, order: Order) -> ReadyHarness:
        """The harness that an order is run in, the same after a restart.

        Raises UsageError for an unknown task.
        """
        able = [one for one in self.harnesses if order.task_id in one.tasks]
        if not able:
            raise UsageError(f"no task {order.task_id!r} can be run here; GET /v1/info lists them")
        chosen = draw([one.spec for one in able], 1, f"{order.id}/{order.seed}")[0]
        return next(one for one in able if one.spec == chosen)

    async def run(self) -> None:
        """Work until cancelled."""
        slots = asyncio.Semaphore(self.concurrency)
        try:
            while True:
                for entry in list(self.queue.waiting()):
                    if len(self._running) >= self.concurrency:
                        break
                    self.queue.move(entry, "running")
                    work = asyncio.create_task(self._work(entry, slots))
                    self._running[entry.order.id] = work
                async with self.changed:
                    await self.changed.wait_for(lambda: self._fault or self._can_start())
                if self._fault is not None:
                    raise self._fault
        finally:
            for work in self._running.values():
                work.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def cancel(self, entry: Entry) -> None:
        """End an order's attempts, if it is open; its sandboxes are gone when this returns."""
        if entry.state in ("acked", "cancelled"):
            return
        self.queue.move(entry, "cancelled")
        if work := self._running.get(entry.order.id):
            work.cancel()
            await asyncio.wait({work})
            # A task that is cancelled before it began never gets to its own `finally`.
            self._running.pop(entry.order.id, None)
        await self.gone(entry)

    async def gone(self, entry: Entry) -> None:
        """An order is over and done with."""
        if self.discard:
            await asyncio.to_thread(shutil.rmtree, self.place(entry.order), ignore_errors=True)
        await self.notify()

    async def notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def place(self, order: Order) -> Path:
        """The folder of a group's records."""
        return self.folder / GROUPS / order.id

    def _can_start(self) -> bool:
        return len(self._running) < self.concurrency and any(self.queue.waiting())

    async def _work(self, entry: Entry, slots: asyncio.Semaphore) -> None:
        order = entry.order
        failed = ""
        try:
            await self._attempt(order, slots)
        except asyncio.CancelledError:
            if entry.state == "running":  # the server stops; it goes on with it when it is back
                entry.state = "queued"
        except (RolloutError, OSError) as error:
            failed = one_line(str(error))
            if isinstance(error, OSError) or isinstance(error.__cause__, OSError):
                entry.state, self._fault = "queued", UsageError(failed)
        except Exception as error:  # a bug in a plug-in: the client must not wait for ever
            logger.exception("group %s", order.id)
            failed = one_line(f"{type(error).__name__}: {error}")
        self._running.pop(order.id, None)
        if entry.state == "running":
            self._end(entry, failed)
        await self.notify()

    def _end(self, entry: Entry, failed: str) -> None:
        try:
            self.queue.move(entry, "failed" if failed else "finished", failed)
        except RolloutError as error:
            entry.state, self._fault = "queued", error

    async def _attempt(self, order: Order, slots: asyncio.Semaphore) -> None:
        harness = self.harness(order)
        task = harness.tasks[order.task_id]
        manifest = harness.describe([task], order.n, order.seed)
        with open_store(self.place(order), manifest) as store:
            runner = Runner(harness.setup, store=store, slots=slots, seed=order.seed)
            async for _ in runner.groups([task], order.n):
                pass


def payload(entry: Entry, folder: Path, harness: str, rules: DeliveryRules) -> JsonObject:
    """A group as it is delivered: its episodes, its rows, and what was left out and why."""
    found: JsonObject = {
        **msgspec.to_builtins(entry.order),
        "state": entry.state,
        "reason": entry.reason,
        "delivery": entry.deliveries,
        "harness": harness,
        "episodes": [],
        "rows": [],
    }
    if not (folder / "episodes.jsonl").exists():
        return found
    with EpisodeStore.read(folder) as store:
        episodes = sorted(store.latest().values(), key=lambda episode: episode.attempt)
        credits, told = assign(episodes, rules.credit)
        report = Report()
        for episode in episodes:
            credit = credits.get(episode.id)
            reward = credit.reward if credit else None
            found["episodes"].append(msgspec.to_builtins(episode) | {"reward": reward})
            if credit is None or not credit.trained:
                continue
            try:
                samples, one = build_samples(episode, store.trace(episode), rules.samples)
            except MissingTokenIds as error:  # the client decides what that means
                found["reason"] = str(error)
                continue
            report.add(one)
            found["rows"] += [
                msgspec.structs.asdict(row) for row in rl_rows(samples, credit, rules.gamma)
            ]
    return found | {"credit": asdict(told), "samples": asdict(report)}
