"""A rollout server on loopback: groups asked for, delivered, acknowledged, cancelled, and again."""

import argparse
import asyncio
import errno
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from support.scripted_server import ScriptedServer, text
from support.toy_suite import TASKS

from rollout.errors import UsageError
from train.rollout_server import _parser, serve
from train.server.client import RolloutClient, RolloutServerError
from train.server.groups import GroupWorker
from train.server.queue import Queue

ROOT = Path(__file__).parents[2]


def options(folder: Path, *more: str) -> argparse.Namespace:
    given = ["--suite", "support.toy_suite", "--model", "reference", "--sandbox", "local"]
    return _parser().parse_args([*given, "--folder", str(folder), "--port", "0", *more])


@asynccontextmanager
async def served(folder: Path, *more: str) -> AsyncIterator[tuple[RolloutClient, str]]:
    async with AsyncExitStack() as stack:
        url, _ = await stack.enter_async_context(serve(options(folder, *more)))
        client = RolloutClient(url, pause=0.01)
        yield await stack.enter_async_context(client), url


async def ask(url: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
    async with aiohttp.ClientSession() as http:
        async with http.request(method, url + path, json=body, headers=headers) as reply:
            return reply.status, json.loads(await reply.read())


async def first(client: RolloutClient) -> dict[str, Any]:
    """A delivered group, which is not acknowledged."""
    async for group in client.groups():
        return group
    raise AssertionError


async def collect(client: RolloutClient, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found.append(await first(client))
    return found


async def test_a_group_is_delivered_until_it_is_acknowledged(tmp_path: Path) -> None:
    async with served(tmp_path, "--lease", "0.05") as (client, url):
        name = await client.submit("milk", n=3)
        group = await first(client)
        assert (group["id"], group["delivery"], group["state"]) == (name, 1, "finished")
        assert [e["outcome"] for e in group["episodes"]] == ["passed"] * 3
        assert [e["reward"] for e in group["episodes"]] == [1.0] * 3
        assert group["credit"]["zero_variance"] == 1
        again = await first(client)
        assert (again["id"], again["delivery"]) == (name, 2)
        assert again["episodes"] == group["episodes"]
        assert (await ask(url, "POST", f"/v1/groups/{name}/ack"))[0] == 200
        assert (await ask(url, "POST", f"/v1/groups/{name}/ack"))[0] == 200
        assert await ask(url, "GET", "/v1/groups?wait=0.1") == (200, {"groups": []})
        assert (await client.info())["groups"] == {"acked": 1}


async def test_rows_carry_tokens_the_same_in_both_encodings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    async with ScriptedServer(owned_by="vllm") as server:
        server.default = text("no", ids=([1, 2, 3], [4, 5]))
        flags = ("--model", f"openai:{server.model}", "--base-url", server.url)
        async with served(tmp_path, *flags) as (client, url):
            name = await client.submit("milk", n=2)
            packed = await first(client)
            _, plain = await ask(url, "GET", f"/v1/groups/{name}")
    assert plain["rows"] == packed["rows"]
    assert [row["prompt_ids"] for row in packed["rows"]] == [[1, 2, 3]] * 2
    assert packed["rows"][0]["response_ids"] == [4, 5]
    assert packed["rows"][0]["response_mask"] == [1, 1]
    assert packed["rows"][0]["logprobs"] == [-0.5, -1.0]
    assert packed["samples"]["trained"] == 4


async def test_a_damaged_group_spoils_no_other(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, url):
        for name in ("bad", "good"):
            await client.submit("milk", n=1, id=name)
        taken = [group["id"] for group in await collect(client, 2)]
        assert sorted(taken) == ["bad", "good"]
        (tmp_path / "groups" / "bad" / "episodes.jsonl").write_text("{}\n")
        states = {name: (await ask(url, "GET", f"/v1/groups/{name}"))[1]["state"] for name in taken}
    assert states == {"bad": "failed", "good": "finished"}


async def test_the_client_acknowledges_what_was_taken(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, _):
        names = [await client.submit(task, n=1) for task in TASKS]
        taken = []
        async for group in client.groups(most=2):
            taken.append(group["id"])
            if len(taken) == len(names):
                break
        assert sorted(taken) == sorted(names)
        states = (await client.info())["groups"]
        assert states == {"acked": 3, "finished": 1}


async def test_what_is_wrong_is_told_in_one_line(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, url):
        for body, field in [
            ({"task_id": "mlik", "n": 2}, "task_id: no task 'mlik'"),
            ({"task_id": "milk"}, "the body: .*`n`"),
            ({"task_id": "milk", "n": 0}, "n: 0"),
            ({"task_id": "milk", "n": 1, "id": "../up"}, "id: '../up'"),
            ({"task_id": "milk", "n": 1, "color": "red"}, "color"),
            ({"task_id": "milk", "n": 1, "seed": 2**70}, "seed: 1180.* has more than 64 bits"),
        ]:
            status, told = await ask(url, "POST", "/v1/groups", body)
            assert status == 400
            assert "\n" not in told["error"]
            assert re.search(field, told["error"]), told
        assert (await ask(url, "GET", "/v1/groups/none"))[0] == 404
        assert (await ask(url, "GET", "/v1/groups?max=x"))[0] == 400
        await client.submit("milk", n=1, id="mine")
        with pytest.raises(RolloutServerError, match="other settings"):
            await client.submit("milk", n=2, id="mine")
        assert await client.submit("milk", n=1, id="mine") == "mine"


FULL = "the queue is full, of groups open or not acknowledged (--queue 1)"


async def test_a_full_queue_asks_for_patience(tmp_path: Path) -> None:
    async with served(tmp_path, "--queue", "1") as (client, url):
        await client.submit("milk", n=1, id="one")
        status, told = await ask(url, "POST", "/v1/groups", {"task_id": "soap", "n": 1})
        assert (status, told["error"]) == (429, FULL)


async def test_paused_calls_wait_and_a_cancelled_group_is_gone(tmp_path: Path) -> None:
    async with served(tmp_path, "--discard-acked") as (client, url):
        await client.pause()
        assert (await client.info())["paused"]
        await client.submit("milk", n=2, id="held")
        await client.submit("soap", n=2, id="kept")
        assert await ask(url, "GET", "/v1/groups?wait=0.05") == (200, {"groups": []})
        await client.cancel("held")
        assert not (tmp_path / "groups" / "held").exists()
        await client.resume()
        assert not (await client.info())["paused"]
        group = await first(client)
        assert group["id"] == "kept"
        assert (await ask(url, "GET", "/v1/groups/held"))[1]["state"] == "cancelled"
        assert (await ask(url, "POST", "/v1/groups/held/ack"))[0] == 409


async def test_a_group_that_hits_a_bug_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise KeyError("milk")

    monkeypatch.setattr(GroupWorker, "_attempt", broken)
    async with served(tmp_path) as (client, _):
        await client.submit("milk", n=1)
        group = await first(client)
    assert (group["state"], group["reason"]) == ("failed", "KeyError: 'milk'")


async def test_a_full_disk_ends_the_server_and_no_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise UsageError("groups: no space left") from OSError(errno.ENOSPC, "no space left")

    for owner, name in ((GroupWorker, "_attempt"), (Queue, "move")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full if owner is GroupWorker else _refusing(Queue.move))
            async with serve(options(tmp_path)) as (url, work), RolloutClient(url) as client:
                await client.submit("milk", n=1, id="kept")
                with pytest.raises(UsageError, match="no space left"):
                    await work
    async with served(tmp_path) as (client, _):
        assert (await first(client))["state"] == "finished"


def _refusing(move: Any) -> Any:
    """A journal that takes no ends of groups."""

    def moved(queue: Queue, entry: Any, state: str, reason: str = "") -> None:
        if state != "running":
            raise UsageError("orders.jsonl: no space left")
        move(queue, entry, state, reason)

    return moved


async def test_who_waited_and_left_gets_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as (client, url):
        host, port = url.removeprefix("http://").split(":")
        _, left = await asyncio.open_connection(host, int(port))
        left.write(b"GET /v1/groups?wait=60 HTTP/1.1\r\nHost: a\r\n\r\n")
        await client.info()  # by then the server has the other request as well
        left.transport.abort()
        await client.submit("milk", n=1)
        async with asyncio.timeout(20):
            assert (await first(client))["delivery"] == 1


async def test_it_ends_at_once_though_clients_wait(tmp_path: Path) -> None:
    async with started(tmp_path) as (process, url), aiohttp.ClientSession() as http:
        waiting = asyncio.create_task(http.get(f"{url}/v1/groups?wait=60"))
        await ask(url, "GET", "/v1/info")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
        with pytest.raises(aiohttp.ClientError):
            await waiting


async def test_the_client_names_a_server_that_is_none() -> None:
    async def html(_: web.Request) -> web.Response:
        return web.Response(text="<h1>Bad Gateway</h1>", status=502, content_type="text/html")

    app = web.Application()
    app.router.add_get("/v1/info", html)
    async with TestServer(app) as server, RolloutClient(str(server.make_url("/"))) as client:
        with pytest.raises(RolloutServerError, match="502 Bad Gateway"):
            await client.info()


async def test_a_damaged_note_of_what_is_served_is_named(tmp_path: Path) -> None:
    (tmp_path / "served.json").write_text("{")
    with pytest.raises(UsageError, match=r"served\.json is damaged"):
        async with serve(options(tmp_path)):
            pass


async def test_a_secret_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="ANYHARNESS_ROLLOUT_TOKEN"):
        async with serve(options(tmp_path, "--host", "0.0.0.0")):
            pass
    monkeypatch.setenv("ANYHARNESS_ROLLOUT_TOKEN", "s3cret")
    async with served(tmp_path) as (_, url):
        assert (await ask(url, "GET", "/v1/info"))[0] == 401
        async with RolloutClient(url, "s3cret") as client:
            assert "milk" in (await client.info())["tasks"]


async def test_other_settings_on_the_same_folder_are_refused(tmp_path: Path) -> None:
    async with served(tmp_path):
        pass
    with pytest.raises(UsageError, match=r"served\.json.*credit"):
        async with served(tmp_path, "--gamma", "0.5"):
            pass


async def test_harnesses_are_mixed(tmp_path: Path) -> None:
    async with served(tmp_path, "--harness", "react/native,react/mcp") as (client, _):
        for n in range(12):
            await client.submit("milk", n=1, id=f"g{n}")
        seen = set()
        count = 0
        async for group in client.groups(most=4):
            seen.add(group["harness"])
            count += 1
            if count == 12:
                break
    assert seen == {"react/native", "react/mcp"}


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    flags = ["--suite", "support.toy_suite", "--model", "reference", "--sandbox", "local"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "train.rollout_server", *flags, "--folder", str(folder), "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        yield process, line.split()[2]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_killed_it_goes_on_where_it_was(tmp_path: Path) -> None:
    async with started(tmp_path) as (process, url), RolloutClient(url) as client:
        await client.submit("milk", n=2, id="done")
        assert (await first(client))["id"] == "done"
        for n in range(20):
            await client.submit("soap", n=8, id=f"g{n}")
        process.send_signal(signal.SIGKILL)
        await process.wait()

    async with started(tmp_path) as (process, url), RolloutClient(url) as client:
        arrived = {}
        async for group in client.groups(most=8):
            arrived[group["id"]] = [e["attempt"] for e in group["episodes"]]
            if len(arrived) == 21:
                break
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    assert arrived == {"done": [0, 1]} | {f"g{n}": [*range(8)] for n in range(20)}
