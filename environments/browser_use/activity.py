"""What pages are loading, so that waiting for them to come to rest takes no longer than they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from playwright.async_api import BrowserContext, Frame, Page, Request, Response
from playwright.async_api import Error as PlaywrightError

from environments.browser_use.viewport import Limits

__all__ = ["Activity"]

ENDLESS = {"eventsource", "websocket", "ping", "media"}
"""Kinds of requests that may go on for ever, or that nobody sees."""

GIVEN_UP = {"net::ERR_ABORTED", "net::ERR_BLOCKED_BY_RESPONSE"}
"""What a request ends with when the page goes elsewhere, or it becomes a download."""


@dataclass
class _Load:
    begun: float
    navigation: bool
    """Whether the answer will be a new page, and has not begun to come."""


class Activity:
    """The requests under way on the pages of an episode. `tell` is told of pages that fail to open."""

    def __init__(
        self, context: BrowserContext, limits: Limits, tell: Callable[[str], None]
    ) -> None:
        self.limits = limits
        self._tell = tell
        self._loads: dict[Request, _Load] = {}
        self._latest = 0.0
        self._changed = asyncio.Event()
        self.leaving = asyncio.Event()
        """Set when a page asks for another one."""
        self._clock = asyncio.get_running_loop().time
        context.on("request", self._begun)
        context.on("response", self._answered)
        context.on("requestfinished", self._ended)
        context.on("requestfailed", self._failed)

    def begin(self) -> float:
        """The time that `rest` counts from, seconds."""
        self.leaving.clear()
        return self._clock()

    @property
    def navigating(self) -> bool:
        """Whether a page waits for the server to answer with another one."""
        return any(load.navigation for load in self._loads.values())

    def stir(self) -> None:
        """Something else than a request happened that a page needs time for."""
        self._latest = self._clock()
        self._changed.set()

    async def rest(self, since: float = 0.0) -> bool:
        """Wait until what began after `since` is over and the pages are quiet; False: a server is silent.

        Requests that were under way before are not waited for: some pages always have one.
        """
        limits, begun = self.limits, self._clock()
        while True:
            now = self._clock()
            loads = [load for load in self._loads.values() if load.begun >= since]
            quiet_at = max(self._latest, since) + limits.quiet
            if not loads and now >= quiet_at:
                return True
            navigating = any(load.navigation for load in loads)
            deadline = begun + (limits.navigation if navigating else limits.settle)
            if now >= deadline:
                if loads and not navigating:
                    self._tell(f"the page still loads after {limits.settle:.0f} s")
                return not navigating
            await self._change(min(deadline, deadline if loads else quiet_at) - now)

    def forget(self, page: Page) -> None:
        """Stop waiting for what a page that is gone was loading."""
        for request in list(self._loads):
            frame = _frame(request)
            if frame is None or frame.page is page:
                del self._loads[request]
        self.stir()

    async def _change(self, seconds: float) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass

    def _begun(self, request: Request) -> None:
        if request.resource_type not in ENDLESS:
            navigation = request.is_navigation_request()
            self._loads[request] = _Load(self._clock(), navigation)
            if navigation:
                self.leaving.set()
            self.stir()

    def _answered(self, response: Response) -> None:
        request = response.request
        if load := self._loads.get(request):
            load.navigation = False
            self.stir()
        if response.status >= 400 and _is_page(request):
            self._tell(f"the server answered {response.status} for {request.url[:200]}")

    def _ended(self, request: Request) -> None:
        if self._loads.pop(request, None):
            self.stir()

    def _failed(self, request: Request) -> None:
        self._ended(request)
        if _is_page(request) and request.failure and request.failure not in GIVEN_UP:
            self._tell(f"could not open {request.url[:200]}: {request.failure}")


def _is_page(request: Request) -> bool:
    """Whether it is for what the tab itself shows, not for a part of it."""
    frame = _frame(request)
    return request.is_navigation_request() and frame is not None and frame.parent_frame is None


def _frame(request: Request) -> Frame | None:
    try:
        return request.frame
    except PlaywrightError:
        return None  # the first request of a pop-up, or one of a service worker
