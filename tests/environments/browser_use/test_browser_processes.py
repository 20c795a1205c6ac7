"""Where browsers come from: a process that leaves nothing behind, an address, a rented session."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from support.pages import Handler, browser_task, needs_chromium, serve, titled
from support.toys import NoSandbox

from environments.browser_use import cdp
from environments.browser_use import cloud as cloud_module
from environments.browser_use.chromium import Chromium, find
from environments.browser_use.environment import BrowserUse
from environments.browser_use.observation import size
from rollout.errors import EnvironmentFault, UsageError
from rollout.gateway.retry import Retry
from rollout.types import JsonObject

KEY = "bu_secret"


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    found = [int(child) for child in children]
    return found + [deeper for child in found for deeper in descendants(child)]


async def gone(*pids: int) -> None:
    """Wait until processes are gone; the test's own time limit is the bound."""
    while any(Path(f"/proc/{pid}").exists() for pid in pids):  # noqa: ASYNC110 (others' children)
        await asyncio.sleep(0.02)


@needs_chromium()
async def test_a_chromium_leaves_nothing_behind() -> None:
    chromium = await Chromium.start(find())
    assert chromium.endpoint.startswith("ws://127.0.0.1:")
    started = descendants(chromium.process.pid)
    assert len(started) > 1
    await chromium.stop()
    await gone(*started)
    assert not chromium.folder.exists()


OURS = """
import asyncio
from environments.browser_use.chromium import Chromium, find
async def main():
    chromium = await Chromium.start(find())
    print(chromium.process.pid, chromium.folder, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@needs_chromium()
async def test_it_goes_when_our_process_is_killed() -> None:
    ours = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", OURS),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ours.stdout is not None
    guard, folder = (await ours.stdout.readline()).split()
    started = descendants(int(guard))
    ours.kill()
    await ours.wait()
    await gone(int(guard), *started)
    assert not Path(folder.decode()).exists()


@needs_chromium()
async def test_a_guard_that_is_killed_takes_chromium_with_it() -> None:
    chromium = await Chromium.start(find())
    started = descendants(chromium.process.pid)
    os.kill(chromium.process.pid, signal.SIGTERM)
    await gone(*started)
    await chromium.stop()
    assert not chromium.folder.exists()


async def test_a_program_that_is_no_chromium(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="Chromium did not start"):
        await Chromium.start("/bin/false")
    assert list(tmp_path.iterdir()) == []


def test_a_chromium_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--browser /no/such: no such program"):
        find("/no/such")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="no Chromium found: install it"):
        find()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("wss://user:pw@host.org:1/devtools?apiKey=x", "wss://host.org:1"),
        ("https://a.org/session-secret", "https://a.org"),
        ("http://127.0.0.1:9222", "http://127.0.0.1:9222"),
    ],
)
def test_addresses_are_shown_without_what_is_secret(url: str, shown: str) -> None:
    assert cdp.redacted(url) == shown
    assert BrowserUse(f"cdp:{url}").fingerprint()["browser"] == f"cdp:{shown}"


async def test_what_is_no_address() -> None:
    for url in ("", "localhost:9222", "ftp://a.org", "http://"):
        with pytest.raises(UsageError, match="not an address"):
            await BrowserUse(f"cdp:{url}").prepare()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries that don't wait."""
    monkeypatch.setattr(cdp, "RETRY", Retry(tries=3, base=0.0))


@pytest.mark.usefixtures("quick")
async def test_a_browser_that_is_busy_is_asked_again() -> None:
    statuses = [429, 503, 200]

    async def version(request: web.Request) -> web.Response:
        assert request.query["apiKey"] == "x"
        body = {"webSocketDebuggerUrl": "ws://a/devtools/browser/1"}
        return web.json_response(body, status=statuses.pop(0))

    async with serve({"/base/json/version": version}) as base:
        assert await cdp.discover(f"{base}/base/?apiKey=x") == "ws://a/devtools/browser/1"


@pytest.mark.usefixtures("quick")
async def test_there_is_no_browser_at_an_address() -> None:
    async def away(request: web.Request) -> web.Response:
        return web.Response(status=500)

    async def forbidden(request: web.Request) -> web.Response:
        return web.Response(status=403)

    pages: dict[str, str | Handler] = {
        "/secret/json/version": away,
        "/closed/json/version": forbidden,
        "/page/json/version": "<h1>Hello</h1>",
    }
    async with serve(pages) as base:
        for path, problem in [
            ("secret", "it answers 500"),
            ("closed", "it answers 403"),
            ("page", "is not the address of a browser"),
        ]:
            environment = BrowserUse(f"cdp:{base}/{path}")
            with pytest.raises(UsageError, match=problem) as raised:
                await environment.prepare()
            assert path not in str(raised.value)
            await environment.close()


@needs_chromium()
async def test_a_browser_at_an_address_serves_isolated_episodes_and_lives_on() -> None:
    chromium = await Chromium.start(find())
    port = chromium.endpoint.split(":")[2].split("/")[0]
    try:
        for address in (f"http://127.0.0.1:{port}", chromium.endpoint):
            environment = BrowserUse(f"cdp:{address}")
            await environment.prepare()
            page = "<script>document.title = document.cookie; document.cookie = 'a=1'</script>"
            async with serve({"/": page}) as base:
                for _ in range(2):
                    async with environment.open(browser_task(base), 0) as world:
                        reply = await world.call("browser_screenshot", {})
                    assert reply.body["title"] == ""
            await environment.close()
            assert environment.fingerprint()["browser"].startswith("cdp:")
            assert chromium.process.returncode is None
    finally:
        await chromium.stop()


class Cloud:
    """Browser-Use Cloud's API, with a browser of this machine behind it."""

    def __init__(self, port: str) -> None:
        self._port = port
        self.running: set[str] = set()
        self.created: list[JsonObject] = []
        self.trouble: list[int] = []
        """Statuses of the next answers."""
        self.stopped = asyncio.Event()

    async def create(self, request: web.Request) -> web.Response:
        if self.trouble:
            return web.json_response({"detail": f"no, {KEY}"}, status=self.trouble.pop(0))
        assert request.headers["X-Browser-Use-API-Key"] == KEY
        self.created.append(await request.json())
        session = f"s{len(self.created)}"
        self.running.add(session)
        body = {"id": session, "cdpUrl": f"http://127.0.0.1:{self._port}", "status": "active"}
        return web.json_response(body, status=201)

    async def stop(self, request: web.Request) -> web.Response:
        if self.trouble:
            return web.Response(status=self.trouble.pop(0))
        assert request.headers["X-Browser-Use-API-Key"] == KEY
        assert await request.json() == {"action": "stop"}
        self.running.discard(request.match_info["session"])
        self.stopped.set()
        return web.json_response({"status": "stopped"})


@asynccontextmanager
async def cloud(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Cloud, str]]:
    chromium = await Chromium.start(find())
    monkeypatch.setenv("BROWSER_USE_API_KEY", KEY)
    service = Cloud(chromium.endpoint.split(":")[2].split("/")[0])
    paths: dict[str, str | Handler] = {
        "/browsers": service.create,
        "/browsers/{session}": service.stop,
        "/page": titled("Rented", "hello"),
    }
    try:
        async with serve(paths) as base:
            monkeypatch.setattr("environments.browser_use.cloud.API", base)
            yield service, base
    finally:
        await chromium.stop()


@needs_chromium()
async def test_a_rented_browser_is_stopped_after_its_episode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cloud(monkeypatch) as (service, base):
        environment = BrowserUse("browser-use-cloud")
        await environment.prepare()
        assert service.running == set()
        async with environment.open(browser_task(f"{base}/page"), 0) as world:
            assert service.running == {"s2"}
            reply = await world.call("browser_screenshot", {})
            assert reply.body["title"] == "Rented"
            assert size(reply.images[0].data) == (1280, 720)
            await world.snapshot(NoSandbox())
        assert service.running == set()
        assert service.created[-1]["browserScreenWidth"] == 1280
        assert KEY not in str(environment.fingerprint())
        await environment.close()


@needs_chromium()
@pytest.mark.usefixtures("quick")
async def test_a_stop_that_failed_is_made_up_for_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cloud(monkeypatch) as (service, base):
        environment = BrowserUse("browser-use-cloud")
        async with environment.open(browser_task(f"{base}/page"), 0):
            service.trouble = [500, 503, 500]
        assert service.running == {"s1"}
        await environment.close()
        assert service.running == set()


@needs_chromium()
@pytest.mark.usefixtures("quick")
async def test_what_the_cloud_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cloud(monkeypatch) as (service, _):
        for statuses, problem in [
            ([401], "does not know the key in BROWSER_USE_API_KEY"),
            ([402], "the balance is used up"),
            ([429, 429, 429], "it answers 429"),
        ]:
            service.trouble = statuses
            environment = BrowserUse("browser-use-cloud")
            with pytest.raises(UsageError, match=problem) as raised:
                await environment.prepare()
            assert KEY not in str(raised.value)
            await environment.close()
    monkeypatch.delenv("BROWSER_USE_API_KEY")
    with pytest.raises(UsageError, match="set BROWSER_USE_API_KEY"):
        await BrowserUse("browser-use-cloud").prepare()


class Deaf:
    """A service that may have created a session and says nothing of use."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked = 0
        self.waiting, self.hold = asyncio.Event(), asyncio.Event()

    async def create(self, request: web.Request) -> web.Response:
        await request.read()
        self.asked += 1
        self.waiting.set()
        if self.answer in ("silence", "late refusal"):
            await self.hold.wait()
        if self.answer == "hang up":
            assert request.transport is not None
            request.transport.close()
        if self.answer == "no JSON":
            return web.Response(text="{", content_type="application/json")
        return web.Response(status=402 if self.answer == "late refusal" else 502)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", ["silence", "hang up", "no JSON", "502"])
async def test_no_second_browser_is_rented_where_the_first_may_run(
    monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    service = Deaf(answer)
    if answer == "silence":
        monkeypatch.setattr(cloud_module, "TIMEOUT", aiohttp.ClientTimeout(total=2))
    async with serve({"/browsers": service.create}) as base:
        browsers = cloud_module.CloudBrowsers(KEY, base)
        with pytest.raises(EnvironmentFault, match="a session may have begun"):
            await browsers.prepare()
        assert service.asked == 1
        service.hold.set()
        await browsers.close()


@pytest.mark.usefixtures("quick")
async def test_a_rent_that_fails_does_not_hide_a_cancellation() -> None:
    service = Deaf("late refusal")
    async with serve({"/browsers": service.create}) as base:
        browsers = cloud_module.CloudBrowsers(KEY, base)
        renting = asyncio.ensure_future(browsers.prepare())
        await service.waiting.wait()
        renting.cancel()
        service.hold.set()
        with pytest.raises(asyncio.CancelledError):
            await renting
        await browsers.close()


RENTER = """
import asyncio, sys
from environments.browser_use.cloud import CloudBrowsers
async def main():
    async with CloudBrowsers("bu_secret", sys.argv[1]).context("en-US"):
        print("open", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@needs_chromium()
async def test_a_rented_browser_is_stopped_when_our_process_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cloud(monkeypatch) as (service, base):
        ours = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RENTER, base),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert ours.stdout is not None
        assert await ours.stdout.readline() == b"open\n"
        assert service.running == {"s1"}
        ours.kill()
        await ours.wait()
        await service.stopped.wait()
        assert service.running == set()
