"""Our services beside claw-eval's own servers: the same requests, the same replies, the same audit log.

Every fixture set of the checkout is driven with a seeded sequence of valid, invalid, unknown and extreme
requests. Where the two differ, ours is wrong. One server a kind is enough for most sets: the fixture
files that it has loaded are replaced, and its reset route reads them again.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.claw_eval import CHECKOUT, needs_checkout

from environments.claw.backend import Backend, InProcess
from environments.claw.checks import LIVE_WEB
from environments.claw.clock import Clock
from environments.claw.loader import load_tasks
from environments.claw.servers import ServerPool
from environments.claw.service import service_class
from environments.claw.task import ClawTask, ServiceSpec
from rollout.errors import UsageError
from rollout.types import JsonObject

pytestmark = [needs_checkout, pytest.mark.slow, pytest.mark.timeout(900)]

REQUESTS = 60
"""For each fixture set."""
CLOSE = timedelta(seconds=60)
"""Two times this near are the same moment: the two implementations do not read their clocks at once."""
ODD = [None, 1, 1.5, True, "", "x", "3", "2.0", [], ["a"], ["a", 1], {}, -1, 0, 10**12]
KINDS = [
    "calendar", "caption", "config", "contacts", "crm", "documents", "finance", "gmail", "helpdesk",
    "inventory", "kb", "notes", "ocr", "rss", "scheduler", "todo", "web",
]  # fmt: skip


@asynccontextmanager
async def pool() -> Any:
    python = os.environ.get("ANYHARNESS_CLAW_EVAL_PYTHON") or sys.executable
    servers = ServerPool(CHECKOUT.absolute(), python, {"CACHE_TTL": "87600"})
    try:
        await servers.check()
        yield servers
    except UsageError as error:
        pytest.skip(str(error))
    finally:
        await servers.close()


@cache
def tasks() -> list[ClawTask]:
    return load_tasks(CHECKOUT / "tasks")


def fixture_sets(kind: str) -> list[dict[str, str]]:
    """The settings with which tasks of the checkout run a service."""
    found = {
        json.dumps(spec.env, sort_keys=True): spec.env
        for task in tasks()
        for spec in task.services
        if spec.kind == kind
        and all(Path(path).exists() for path in spec.env.values() if "/" in path)
    }
    return [found[key] for key in sorted(found)]


def test_every_kind_of_service_is_compared():
    used = {spec.kind for task in tasks() for spec in task.services}
    assert used - LIVE_WEB == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
async def test_replies_and_audit_are_the_originals(kind, tmp_path):
    if kind == "documents":
        pytest.importorskip("pypdf")
    sets = fixture_sets(kind)
    assert sets
    async with pool() as servers:
        for n, env in enumerate(sets):
            swapped = swap(kind, env, tmp_path)
            spec = ServiceSpec(name=kind, kind=kind, env=swapped)
            async with servers.lease([spec]) as lease:
                service = service_class(kind)(env, clock := Clock())
                requests = list(sequence(kind, env, Random(f"{kind}:{n}")))
                await compare(lease[kind], InProcess(service), clock, requests)


async def test_recorded_pages_are_replayed_as_the_original_replays_them(tmp_path):
    requests = list(record(tmp_path))
    for kind in sorted(LIVE_WEB):
        env = {"WEB_REAL_CACHE_DIR": str(tmp_path), "INJECTION_RATE": "-1"}
        if kind == "web_real_injection":
            payloads = tmp_path / "payloads.json"
            payloads.write_text("{}")
            env["INJECTION_PAYLOADS"] = str(payloads)
        async with pool() as servers:
            spec = ServiceSpec(name="web", kind=kind, env=env)
            async with servers.lease([spec]) as lease:
                service = service_class(kind)(env, clock := Clock())
                await compare(lease["web"], InProcess(service), clock, requests)


def record(folder: Path) -> Iterator[tuple[str, Any]]:
    """A recording, and requests that it answers."""
    for n in range(3):
        page = {"url": f"https://example.com/{n}", "title": "页面", "snippet": "s"}
        found = {"results": [page] * n, "total": n, "query": f"q {n}", "_cached_at": 1.0}
        keep(folder, f"search:q {n}:10", found)
        keep(folder, f"fetch:{page['url']}", {"status_code": 200, **page, "content": "内容"})
        yield "/web/search", {"query": f"q {n}"}
        yield "/web/fetch", {"url": page["url"], "timeout_seconds": n}
    yield "/web/notify", {"channel": "email", "message": "m"}
    for path in ("/web/search", "/web/fetch", "/web/notify", "/web/nothing"):
        yield path, {}
        yield path, None


def keep(folder: Path, key: str, reply: JsonObject) -> None:
    path = folder / f"{sha256(key.encode()).hexdigest()}.json"
    path.write_text(json.dumps({"_cached_at": 1.0e10, **reply}))


def swap(kind: str, env: dict[str, str], folder: Path) -> dict[str, str]:
    """The same settings, with single-file fixtures copied to where the running server looks."""
    swapped = dict(env)
    for variable in service_class(kind).fixtures:
        if (path := Path(env[variable])).is_file():
            swapped[variable] = str(folder / variable)
            shutil.copyfile(path, swapped[variable])
    return swapped


async def compare(
    theirs: Backend, ours: Backend, clock: Clock, requests: list[tuple[str, Any]]
) -> None:
    for path, body in requests:
        clock.tick()
        expected = await theirs.send("POST", path, body)
        found = await ours.send("POST", path, body)
        shown = f"{path} {json.dumps(body, ensure_ascii=False)}"
        assert found.status == expected.status, shown
        if expected.status != 500:
            assert_same(plain(found.body), expected.body, shown)
    assert_same(plain(await ours.audit()), await theirs.audit(), "audit")


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def assert_same(found: Any, expected: Any, where: str) -> None:
    assert type(found) is type(expected), f"{where}: {found!r}, the original {expected!r}"
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key, value in expected.items():
            if key == "categories":  # A set made a list: another order in every process.
                assert sorted(found[key]) == sorted(value), where
            else:
                assert_same(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for n, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{where}[{n}]")
    else:
        assert found == expected or near(found, expected), f"{where}: {found!r} != {expected!r}"


def near(one: Any, other: Any) -> bool:
    try:
        return abs(datetime.fromisoformat(one) - datetime.fromisoformat(other)) < CLOSE
    except (TypeError, ValueError):
        return False


def sequence(kind: str, env: dict[str, str], random: Random) -> Iterator[tuple[str, Any]]:
    """Requests to every route, most of them sensible."""
    known = sorted(set(map(str, values(kind, env)))) or ["x"]
    routes = service_class(kind).routes
    for _ in range(REQUESTS):
        path = random.choice([*routes, f"/{kind}/nothing"])
        if path not in routes:
            yield path, {}
        elif random.random() < 0.04:
            yield path, random.choice([None, [], "s", 3, [{}]])
        else:
            fields = routes[path].model.model_fields
            yield path, body(fields, known, random)


def values(kind: str, env: dict[str, str]) -> Iterator[Any]:
    for variable in service_class(kind).fixtures:
        path = Path(env[variable])
        if path.suffix == ".json" and path.is_file():
            yield from leaves(json.loads(path.read_text("utf-8")))
        elif path.is_dir():
            yield from (str(file.relative_to(path)) for file in sorted(path.rglob("*")))


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)
    elif value is not None:
        yield value


def body(fields: Any, known: list[str], random: Random) -> JsonObject:
    sent = {}
    for name, field in fields.items():
        if random.random() < (0.05 if field.is_required() else 0.5):
            continue
        odd = random.random() < 0.12
        sent[name] = (
            random.choice(ODD) if odd else made_up(name, str(field.annotation), known, random)
        )
    if random.random() < 0.1:
        sent["undeclared"] = 1
    return sent


def made_up(name: str, kind: str, known: list[str], random: Random) -> Any:
    if "date" in name or name.endswith("_time"):
        day = datetime.now(UTC) + timedelta(days=random.randrange(-1, 8))
        clock = f"T{random.randrange(24):02}:00:00Z" if name.endswith("_time") else ""
        return f"{day:%Y-%m-%d}{clock}"
    if "list" in kind:
        return [random.choice(known) for _ in range(random.randrange(3))]
    if "int" in kind:
        return random.randrange(40)
    if "bool" in kind:
        return random.random() < 0.5
    if "float" in kind:
        return random.random() * 100
    text = random.choice(known)
    return text if name.endswith("_id") or random.random() < 0.5 else text[: random.choice([2, 5])]
