"""Many episodes while browsers die under them: nothing is left behind, and nothing is lost."""

import asyncio
import os
import random
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.pages import browser_task, needs_chromium, serve, titled
from support.toys import Acting, Fake, ask

from environments.browser_use.browser import HungBrowser, LocalBrowser
from environments.browser_use.environment import BrowserUse
from environments.browser_use.tabs import Tabs
from environments.browser_use.viewport import Limits
from rollout.environment import World
from rollout.episode import Setup
from rollout.gateway.server import Gateway
from rollout.harness import Job
from rollout.runner import Runner
from rollout.sandboxes.local import Local
from rollout.store import EpisodeStore
from rollout.types import Outcome, Task

EPISODES, CRASHES = 200, 12

PAGE = titled("Start", "<button onclick=\"document.title='clicked'\">Button</button>")

VERIFY = """
def verify_web(state, answer):
    yield "title", answer == "clicked"
"""


class Crashing(BrowserUse):
    """Its browser is killed in the midst of some episodes."""

    def __init__(self, crashes: set[int]) -> None:
        super().__init__(limits=Limits(call=20, navigation=10))
        self.crashes = crashes
        self.opened = 0

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        number, self.opened = self.opened, self.opened + 1
        async with super().open(task, seed) as world:
            if number in self.crashes:
                self.kill()
            yield world

    def kill(self) -> None:
        """As a crash does: the browser itself, its guard is left to notice."""
        assert isinstance(self.browsers, LocalBrowser)
        assert self.browsers.chromium is not None
        guard = self.browsers.chromium.process.pid
        browser, *_ = Path(f"/proc/{guard}/task/{guard}/children").read_text().split() or ["0"]
        if int(browser):
            os.kill(int(browser), signal.SIGKILL)


async def act(job: Job) -> str:
    await ask(job)
    assert job.call_tool is not None
    await job.call_tool("browser_screenshot", {})
    reply = await job.call_tool("browser_click", {"x": 0.02, "y": 0.02})
    return str(reply.body.get("title", ""))


def processes_in(folder: Path) -> list[str]:
    """Command lines that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_text(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files alone. Its path is short: sockets are made in it."""
    with tempfile.TemporaryDirectory(prefix="runs-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


@needs_chromium()
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_crashes_cost_nothing(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "verify.py").write_text(VERIFY)
    crashes = set(random.Random(7).sample(range(5, EPISODES), CRASHES))
    environment = Crashing(crashes)
    with EpisodeStore.create(tmp_path / "run") as store:
        async with serve({"/": PAGE}) as base, Gateway(Fake()) as gateway:
            setup = Setup(environment, Acting(act), gateway, Local(), "native")
            runner = Runner(setup, store=store, concurrency=4, retries=8, backoff=0.0)
            task = browser_task(base, verifier=str(tmp_path / "verify.py"))
            (group,) = [group async for group in runner.groups([task], n=EPISODES)]
            await environment.close()
        assert [episode.outcome for episode in group.episodes] == [Outcome.PASSED] * EPISODES
        assert len(store.latest()) == EPISODES
        retried = [each for each in store.episodes() if each.outcome is Outcome.INFRA_ERROR]
    assert len(retried) >= CRASHES
    assert {episode.cause for episode in retried} == {"environment"}
    while processes_in(temporary):  # noqa: ASYNC110 (processes that are ending)
        await asyncio.sleep(0.05)
    assert list(temporary.iterdir()) == []


@needs_chromium()
async def test_a_browser_that_opens_no_page_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = BrowserUse(limits=Limits(call=0.5))
    browsers = environment.browsers
    assert isinstance(browsers, LocalBrowser)
    await environment.prepare()
    hung = browsers.chromium
    assert hung is not None

    async def never(tabs: Tabs) -> None:
        await asyncio.Event().wait()

    try:
        async with serve({"/": PAGE}) as base:
            monkeypatch.setattr(Tabs, "open", never)
            with pytest.raises(HungBrowser, match=r"did not open the start page in 0\.5 s"):
                async with environment.open(browser_task(base), 0):
                    pass
            assert hung.process.returncode is not None
            monkeypatch.undo()
            environment._limits = Limits()
            async with environment.open(browser_task(base), 0) as world:
                assert (await world.call("browser_screenshot", {})).ok
    finally:
        await environment.close()
