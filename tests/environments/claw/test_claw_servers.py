"""claw-eval's own servers: started side by side, private, reset, used again, and gone at the end."""

import asyncio
import os
import select
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.tiny_checkout import write_checkout

from environments.claw.servers import ServerPool
from environments.claw.task import ServiceSpec
from rollout.errors import EnvironmentFault, UsageError

pytest.importorskip("uvicorn")

SLEEPER = """
import os, time
with open(os.environ["MARK"], "w") as mark:
    mark.write(str(os.getpid()))
time.sleep(600)
"""

INBOX = "tasks/T901_mail/fixtures/gmail/inbox.json"


@pytest.fixture
def checkout(tmp_path):
    return write_checkout(tmp_path)


@asynccontextmanager
async def opened(checkout: Path):
    pool = ServerPool(checkout, sys.executable, {"EXTRA": "1"})
    try:
        yield pool
    finally:
        await pool.close()


def mail(checkout: Path, name: str = "gmail", **env: str) -> ServiceSpec:
    return ServiceSpec(
        name=name, kind="gmail", env={"GMAIL_FIXTURES": str(checkout / INBOX), **env}
    )


async def pid(server) -> int:
    return (await server.send("POST", "/gmail/about", {})).body["pid"]


async def test_a_server_is_reset_before_each_attempt_and_used_again(checkout):
    async with opened(checkout) as pool:
        async with pool.lease([mail(checkout)]) as servers:
            first = await pid(servers["gmail"])
            await servers["gmail"].send("POST", "/gmail/send", {"to": "a"})
            assert (await servers["gmail"].audit())["sent_messages"] == [{"to": "a"}]
        async with pool.lease([mail(checkout)]) as servers:
            assert await servers["gmail"].audit() == {"calls": [], "sent_messages": []}
            assert await pid(servers["gmail"]) == first


async def test_attempts_at_the_same_time_and_other_settings_have_servers_of_their_own(checkout):
    specs = [mail(checkout, "one"), mail(checkout, "two"), mail(checkout, "three", COLOUR="red")]
    async with opened(checkout) as pool:
        async with pool.lease(specs) as servers, pool.lease(specs[:1]) as others:
            pids = [await pid(server) for server in (*servers.values(), *others.values())]
    assert len(set(pids)) == 4


async def test_they_listen_on_loopback_and_get_neither_proxy_nor_error_rate(checkout, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    monkeypatch.setenv("ERROR_RATE", "1")
    async with opened(checkout) as pool, pool.lease([mail(checkout)]) as servers:
        about = (await servers["gmail"].send("POST", "/gmail/about", {})).body
        assert "HTTPS_PROXY" not in about["env"]
        assert (about["env"]["ERROR_RATE"], about["env"]["EXTRA"]) == ("0", "1")
        inodes = {os.readlink(fd) for fd in Path(f"/proc/{about['pid']}/fd").iterdir()}
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        bound = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]
        assert [address.partition(":")[0] for address in bound] == ["0100007F"]


async def test_what_it_started_ends_with_it(checkout):
    async with opened(checkout) as pool:
        async with pool.lease([mail(checkout)]) as servers:
            about = (await servers["gmail"].send("POST", "/gmail/about", {})).body
        watched = [os.pidfd_open(about[name]) for name in ("pid", "child")]
        assert not select.select(watched, [], [], 0)[0]
    for descriptor in watched:
        assert select.select([descriptor], [], [], 60)[0]
        os.close(descriptor)


async def test_a_server_that_does_not_start_says_why(checkout):
    async with opened(checkout) as pool:
        with pytest.raises(
            EnvironmentFault, match=r"gmail server did not start: no mail today"
        ) as raised:
            async with pool.lease([mail(checkout), mail(checkout, "b", BROKEN="1")]):
                pass
    assert raised.value.detail == "line one\nno mail today"


async def test_a_server_that_dies_is_started_anew(checkout):
    async with opened(checkout) as pool:
        async with pool.lease([mail(checkout)]) as servers:
            about = (await servers["gmail"].send("POST", "/gmail/about", {})).body
            first, child = about["pid"], os.pidfd_open(about["child"])
            died = await servers["gmail"].send("POST", "/gmail/die", {})
            assert died.status == 500
            with pytest.raises(EnvironmentFault, match="no audit"):
                await servers["gmail"].audit()
        assert select.select([child], [], [], 60)[0]
        os.close(child)
        async with pool.lease([mail(checkout)]) as servers:
            assert await pid(servers["gmail"]) != first


async def test_what_it_prints_does_not_stop_it_and_a_crash_is_a_500(checkout):
    async with opened(checkout) as pool, pool.lease([mail(checkout)]) as servers:
        for _ in range(3):
            assert (await servers["gmail"].send("POST", "/gmail/noise", {})).status == 200
        crashed = await servers["gmail"].send("POST", "/gmail/crash", {})
    assert (crashed.status, crashed.body) == (500, {"error": "Internal Server Error"})


async def test_cancelling_a_start_leaves_no_process(checkout):
    (checkout / "mock_services" / "gmail" / "server.py").write_text(SLEEPER)
    mark = checkout / "mark"
    os.mkfifo(mark)
    async with opened(checkout) as pool:

        async def lease():
            async with pool.lease([mail(checkout, MARK=str(mark))]):
                pass

        task = asyncio.create_task(lease())
        number = int(await asyncio.to_thread(mark.read_text))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


async def test_an_interpreter_that_can_not_run_them_is_named(checkout):
    with pytest.raises(UsageError, match="pip install fastapi"):
        await ServerPool(checkout, "/bin/false", {}).check()
    with pytest.raises(UsageError, match="No such file"):
        await ServerPool(checkout, "/nowhere/python", {}).check()
    await ServerPool(checkout, sys.executable, {}).check()
