"""What the agent gets to see: the address, the title, the tabs, what happened, and a picture."""

from __future__ import annotations

import asyncio
import base64
import struct
from dataclasses import dataclass

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page, ViewportSize

from environments.browser_use.tabs import Tabs
from environments.browser_use.viewport import HEIGHT, WIDTH
from environments.browser_use.walls import PROBE, Look
from rollout.errors import EnvironmentFault
from rollout.types import Image, JsonObject

__all__ = ["Observation", "glance", "observe", "size"]

VIEWPORT: ViewportSize = {"width": WIDTH, "height": HEIGHT}

TITLE = 200
"""Characters of a title that are shown."""


@dataclass(frozen=True)
class Observation:
    """The state of the browser after an action."""

    url: str
    look: Look
    tab: int
    tabs: list[JsonObject]
    screenshot: Image

    @property
    def title(self) -> str:
        return self.look["title"][:TITLE]

    def body(self, events: list[str]) -> JsonObject:
        """The JSON part of a tool's reply."""
        return {
            "url": self.url,
            "title": self.title,
            "tab": self.tab,
            "tabs": self.tabs,
            "events": events,
        }


async def observe(tabs: Tabs) -> Observation:
    """Look at the active tab. Raises TimeoutError or PlaywrightError when the page does not answer."""
    await tabs.ensure()
    page = tabs.active
    if (
        page.viewport_size != VIEWPORT
    ):  # a pop-up has its own idea; so has a context that we did not make
        await page.set_viewport_size(VIEWPORT)
    look = await glance(tabs, page)
    screenshot = await _screenshot(tabs, page)
    return Observation(
        url=page.url,
        look=look,
        tab=tabs.pages.index(page),
        tabs=[
            {"index": n, "title": await _title(tabs, other, look), "url": other.url}
            for n, other in enumerate(tabs.pages)
        ],
        screenshot=screenshot,
    )


async def glance(tabs: Tabs, page: Page) -> Look:
    """What a page shows. Raises TimeoutError or PlaywrightError when it does not answer."""
    look: Look = await asyncio.wait_for(page.evaluate(PROBE), tabs.limits.probe)
    return look


async def _title(tabs: Tabs, page: Page, look: Look) -> str:
    """The title of a tab; a tab in the background may hang without harm."""
    if page is tabs.active:
        return look["title"][:TITLE]
    try:
        return (await asyncio.wait_for(page.title(), tabs.limits.probe))[:TITLE]
    except (PlaywrightError, TimeoutError):
        return ""


async def _screenshot(tabs: Tabs, page: Page) -> Image:
    """The viewport, straight from DevTools: Playwright's own waits for fonts, which may never come."""
    async with asyncio.timeout(tabs.limits.screenshot):
        session = await tabs.session(page)
        reply = await session.send("Page.captureScreenshot", {"format": "png"})
    data = base64.b64decode(reply["data"])
    if size(data) != (WIDTH, HEIGHT):
        raise EnvironmentFault(f"the screenshot is {size(data)} pixels, not {(WIDTH, HEIGHT)}")
    return Image(data=data)


def size(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG, pixels (its IHDR chunk, ISO/IEC 15948)."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height
