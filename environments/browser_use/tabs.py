"""The open pages of an episode, which of them is looked at, and what happens on them unasked."""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
from collections.abc import Awaitable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, CDPSession, Dialog, FilePayload, Page
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from environments.browser_use import elements
from environments.browser_use.action import ActionError
from environments.browser_use.activity import Activity
from environments.browser_use.downloads import Downloads
from environments.browser_use.viewport import Limits

__all__ = ["BLANK", "Tabs"]

BLANK = "about:blank"
"""What a new tab shows."""

NO_PAGE = ("Download is starting", "interrupted by another navigation", "net::ERR_ABORTED")
"""Ends of a navigation that are none of its faults: a download, a page that sends elsewhere at once."""

TWO_FRAMES = """() => new Promise(done => {
  setTimeout(done, 250);
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
})"""
"""Lists that load more when their end is seen, and the like, act with the frame after a scroll. Where no
frames are drawn, the timer ends it."""

DIALOG_TEXT = 500
EVENTS = 20
"""That one reply tells: pages can ask for ever."""


class Tabs:
    """The tabs of one browser context. What happens unasked is told as one-line events."""

    def __init__(self, context: BrowserContext, files: Mapping[str, Path], limits: Limits) -> None:
        self.context = context
        self.files = files
        """What can be uploaded: path in the workspace -> file on this machine."""
        self.limits = limits
        self.pages: list[Page] = []
        self.activity = Activity(context, limits, self.tell)
        self.downloads = Downloads(self.tell)
        self._active: Page | None = None
        self._parents: dict[Page, Page | None] = {}
        self._sessions: dict[Page, CDPSession] = {}
        self._events: list[str] = []
        self._answering: set[asyncio.Task[None]] = set()
        self._ours = self._uploading = False

    @property
    def active(self) -> Page:
        """The page that is looked at. Raises ActionError when the last one was closed."""
        if self._active is None:
            raise ActionError("no tab is open: open one with browser_tab")
        return self._active

    async def open(self) -> None:
        """Begin to listen, with one tab."""
        await self.context.add_init_script(elements.LISTS_STAY_CLOSED)
        self.context.on("page", self._opened)
        self.context.on("dialog", self._asked)
        for page in self.context.pages:
            self._opened(page)
        self._events.clear()
        await self.ensure()

    async def close(self) -> None:
        """End what still runs here; the context is its owner's to close."""
        await self.downloads.close()
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    def tell(self, event: str) -> None:
        """Note what happened, for the next reply."""
        self._events.append(" ".join(event.split()))

    def take_events(self) -> list[str]:
        """What happened since the last time."""
        events, self._events = self._events, []
        if (more := len(events) - EVENTS) > 0:
            events[EVENTS:] = [f"and {more} more"]
        return events

    async def ensure(self) -> None:
        """Have a tab open: pages can close themselves."""
        if self._active is None:
            await self.new_tab()

    async def rest(self, since: float) -> None:
        """Wait, within bounds, until the active page shows what was done from `since` on."""
        await self._reached()
        if not await self.activity.rest(since):
            await self._stop_loading()
            self.tell(self._silence)
        await self.downloads.settle(self.limits.settle)
        if self._active is not None:
            limit = self.limits.settle * 1000
            await _within(self._active.wait_for_load_state("domcontentloaded", timeout=limit))

    async def session(self, page: Page) -> CDPSession:
        """The DevTools session of a page."""
        if page not in self._sessions:
            self._sessions[page] = await self.context.new_cdp_session(page)
        return self._sessions[page]

    async def new_tab(self) -> None:
        self._ours = True
        try:
            page = await self.context.new_page()
        finally:
            self._ours = False
        await self._show(page)

    async def focus(self, index: int) -> None:
        await self._show(self._at(index))

    async def close_tab(self, index: int | None = None) -> None:
        page = self.active if index is None else self._at(index)
        await page.close()
        if self._active is not None:
            await self._show(self._active)

    async def goto(self, url: str) -> None:
        limit = self.limits.navigation * 1000
        await self._navigate(self.active.goto(url, wait_until="commit", timeout=limit))

    async def reload(self) -> None:
        limit = self.limits.navigation * 1000
        await self._navigate(self.active.reload(wait_until="commit", timeout=limit))

    async def back(self) -> None:
        limit, before = self.limits.navigation * 1000, self.active.url
        went = await self._navigate(self.active.go_back(wait_until="commit", timeout=limit))
        if went is None and self.active.url == before:
            raise ActionError("there is no page to go back to")

    async def forward(self) -> None:
        limit, before = self.limits.navigation * 1000, self.active.url
        went = await self._navigate(self.active.go_forward(wait_until="commit", timeout=limit))
        if went is None and self.active.url == before:
            raise ActionError("there is no page to go forward to")

    async def forget_history(self) -> None:
        """Make the page that is open the first one: nothing is behind it to go back to."""
        session = await self.session(self.active)
        await session.send("Page.resetNavigationHistory")

    async def options_at(self, x: float, y: float) -> list[str]:
        """The options of the drop-down list at a point, CSS pixels."""
        try:
            async with asyncio.timeout(self.limits.probe):
                return await elements.options_at(self.active, x, y)
        except TimeoutError:
            return []  # a page that answers no question may still take a click

    async def select(self, x: float, y: float, option: str) -> None:
        await elements.select_at(self.active, x, y, option)

    async def upload(self, x: float, y: float, name: str) -> None:
        path = self.files[name]
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        payload = FilePayload(name=Path(name).name, mimeType=kind, buffer=path.read_bytes())
        self._uploading = True
        try:
            await elements.upload_at(self.active, x, y, payload)
        finally:
            self._uploading = False

    async def replace(self, url: str) -> None:
        """Put a new tab, on a URL, in place of the active one, which crashed or hangs."""
        broken = self.active
        place = self.pages.index(broken)
        await self.new_tab()
        self._closed(broken)
        self.pages.insert(place, self.pages.pop())
        self.spawn(broken.close())  # a page that hangs may take its time
        if url != BLANK:
            await self.goto(url)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the call that is being answered."""
        task = asyncio.create_task(_within(work))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _navigate(self, going: Awaitable[Any]) -> Any:
        try:
            return await going
        except PlaywrightTimeout:
            await self._stop_loading()
            raise ActionError(self._silence) from None
        except PlaywrightError as error:
            if any(text in error.message for text in NO_PAGE):
                return True
            raise

    async def _stop_loading(self) -> None:
        session = await self.session(self.active)
        await _within(session.send("Page.stopLoading"))
        self.activity.forget(self.active)

    @property
    def _silence(self) -> str:
        return f"the server did not answer within {self.limits.navigation:.0f} s"

    async def _reached(self) -> None:
        """Until the page has dealt with the input: then it is known whether it wants another page.

        A page that does answers no question before it has it, or is stopped.
        """
        if self._active is None:
            return
        ends = {
            asyncio.ensure_future(_within(self._active.evaluate(TWO_FRAMES))),
            asyncio.ensure_future(self.activity.leaving.wait()),
        }
        limit = self.limits.probe
        await asyncio.wait(ends, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        await asyncio.gather(*ends, return_exceptions=True)

    async def _show(self, page: Page) -> None:
        self._active = page
        await page.bring_to_front()

    def _at(self, index: int) -> Page:
        if index >= len(self.pages):
            raise ActionError(f"no tab {index}: there are {len(self.pages)}, counted from 0")
        return self.pages[index]

    def _opened(self, page: Page) -> None:
        """A new tab is looked at, as in any browser."""
        self._parents[page], self._active = self._active, page
        self.pages.append(page)
        page.on("close", self._closed)
        page.on("crash", self.activity.forget)
        page.on("download", self.downloads.begin)
        page.on("filechooser", self._file_asked)
        self.activity.stir()
        if not self._ours:
            self.tell(f"a new tab opened: {page.url[:200]}")

    def _closed(self, page: Page) -> None:
        if page not in self.pages:
            return
        self.pages.remove(page)
        self._sessions.pop(page, None)
        self.activity.forget(page)
        if self._active is page:
            parent = self._parents.get(page)
            last = self.pages[-1] if self.pages else None
            self._active = parent if parent in self.pages else last
        self._parents.pop(page, None)

    def _asked(self, dialog: Dialog) -> None:
        """Answered at once: nothing else works on a page that shows a dialog."""
        said = dialog.message[:DIALOG_TEXT]
        if dialog.type == "beforeunload":
            self.tell("the page asked whether to leave it: left")
        elif dialog.type == "prompt":
            self.tell(f"prompt, answered {dialog.default_value!r}: {said}")
        else:
            self.tell(f"{dialog.type}, accepted: {said}")
        self.activity.stir()
        self.spawn(
            dialog.accept(dialog.default_value) if dialog.type == "prompt" else dialog.accept()
        )

    def _file_asked(self, _: object) -> None:
        if not self._uploading:
            self.tell("the page asks for a file: give it with browser_upload at the same point")


async def _within(work: Awaitable[Any]) -> None:
    """Do what may fail on a page that is gone, or is going elsewhere, without a word."""
    with contextlib.suppress(PlaywrightError, TimeoutError):
        await work
