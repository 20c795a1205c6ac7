"""Where browser contexts come from: one for each episode, with cookies and storage of its own.

`choose` reads what `--browser` says: nothing, the path of a Chromium, `cdp:URL`, `browser-use-cloud`.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from playwright.async_api import Browser, BrowserContext, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from environments.browser_use.cdp import check_address, discover, redacted
from environments.browser_use.chromium import Chromium, find
from environments.browser_use.viewport import HEIGHT, WIDTH
from rollout.errors import EnvironmentFault
from rollout.types import JsonObject

__all__ = [
    "Browsers",
    "Driver",
    "HungBrowser",
    "LocalBrowser",
    "RemoteBrowser",
    "SharedBrowser",
    "bounded",
    "close_quietly",
    "new_context",
]

T = TypeVar("T")

OPEN_LIMIT = 30.0
"""Seconds for a context to open. A browser that takes longer hangs, and is replaced."""
CLOSE_LIMIT = 10.0
"""Seconds for a context to close, before it is left to its browser."""


class HungBrowser(EnvironmentFault):
    """The browser is there, and does not do what it is asked."""


class Browsers(ABC):
    """Gives each episode a browser context of its own."""

    @abstractmethod
    async def prepare(self) -> None:
        """Find out whether there will be a browser. Raises UsageError or EnvironmentFault."""

    @abstractmethod
    def context(self, locale: str) -> AbstractAsyncContextManager[BrowserContext]:
        """A fresh context, gone with everything in it at the end."""

    @abstractmethod
    async def close(self) -> None:
        """End everything that was started."""

    @abstractmethod
    def fingerprint(self) -> JsonObject:
        """Which browser, for the manifest."""


class Driver:
    """Playwright's own process, started with the first browser."""

    def __init__(self) -> None:
        self._playwright: Playwright | None = None

    async def connect(self, endpoint: str, artifacts: str | None = None) -> Browser:
        """A connection to the browser at a WebSocket address. Raises EnvironmentFault."""
        if self._playwright is None:
            self._playwright = await async_playwright().start()
        try:
            return await self._playwright.chromium.connect_over_cdp(
                endpoint,
                timeout=OPEN_LIMIT * 1000,
                artifacts_dir=artifacts,
                is_local=artifacts is not None,
            )
        except PlaywrightError as error:
            problem = _without_address(error.message, endpoint)
            raise EnvironmentFault(f"no browser at {redacted(endpoint)}: {problem}") from None

    async def stop(self) -> None:
        if self._playwright is not None:
            playwright, self._playwright = self._playwright, None
            await playwright.stop()


class SharedBrowser(Browsers):
    """One browser that serves all episodes, and is started or connected to again when it is gone."""

    def __init__(self) -> None:
        self._driver = Driver()
        self._browser: Browser | None = None
        self._lock = asyncio.Lock()
        self._version = ""

    @abstractmethod
    async def _start(self) -> tuple[str, str | None]:
        """Bring a browser up: its WebSocket address, and a folder for downloads if it is ours."""

    async def _end(self) -> None:
        """Take down what `_start` brought up."""

    async def prepare(self) -> None:
        await self._connected()

    @asynccontextmanager
    async def context(self, locale: str) -> AsyncIterator[BrowserContext]:
        browser = await self._connected()
        try:
            opened = await bounded(new_context(browser, locale), OPEN_LIMIT)
        except (PlaywrightError, TimeoutError) as error:
            await self._discard(browser)
            raise HungBrowser(f"the browser opens no context: {error}") from None
        try:
            yield opened
        except HungBrowser:
            await self._discard(browser)
            raise
        finally:
            await close_quietly(opened)

    async def close(self) -> None:
        async with self._lock:
            await self._release()
            await self._driver.stop()

    async def _connected(self) -> Browser:
        async with self._lock:
            if self._browser is None or not self._browser.is_connected():
                await self._release()
                self._browser = await self._driver.connect(*await self._start())
                self._version = self._browser.version
            return self._browser

    async def _discard(self, browser: Browser) -> None:
        """Give up a browser that hangs: the next episode gets a new one."""
        async with self._lock:
            if self._browser is browser:
                await self._release()

    async def _release(self) -> None:
        browser, self._browser = self._browser, None
        if browser is not None:
            await close_quietly(browser)
        await self._end()


class LocalBrowser(SharedBrowser):
    """A headless Chromium of this machine."""

    def __init__(self, named: str = "") -> None:
        super().__init__()
        self._named = named
        self.chromium: Chromium | None = None

    async def prepare(self) -> None:
        find(self._named)
        await super().prepare()

    async def _start(self) -> tuple[str, str | None]:
        self.chromium = await Chromium.start(find(self._named))
        return self.chromium.endpoint, str(self.chromium.folder / "downloads")

    async def _end(self) -> None:
        chromium, self.chromium = self.chromium, None
        if chromium is not None:
            await chromium.stop()

    def fingerprint(self) -> JsonObject:
        return {"browser": "local Chromium", "version": self._version}


class RemoteBrowser(SharedBrowser):
    """A browser that somebody else runs, at a CDP address."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = check_address(url)

    async def _start(self) -> tuple[str, str | None]:
        return await discover(self._url), None

    def fingerprint(self) -> JsonObject:
        return {"browser": f"cdp:{redacted(self._url)}", "version": self._version}


async def new_context(browser: Browser, locale: str) -> BrowserContext:
    """A context whose pages, pop-ups too, are 1280x720 at scale 1."""
    return await browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT},
        device_scale_factor=1,
        locale=locale,
        accept_downloads=True,
    )


async def bounded(work: Coroutine[Any, Any, T], limit: float) -> T:
    """The result of what Playwright itself sets no limit to. Raises TimeoutError.

    What takes longer ends with its browser. Cancelled it would fail all the same, later, and unheard.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.wait_for(asyncio.shield(task), limit)


async def close_quietly(closable: Browser | BrowserContext) -> None:
    """Close what may be dead already, or may never answer."""
    with contextlib.suppress(PlaywrightError, TimeoutError):
        await asyncio.wait_for(closable.close(), CLOSE_LIMIT)


def _without_address(message: str, endpoint: str) -> str:
    """The first line of Playwright's message; the lines after it repeat the address."""
    return message.partition("\n")[0].replace(endpoint, redacted(endpoint))
