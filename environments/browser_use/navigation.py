"""Actions of the browser's own window: addresses, history, tabs; and those that only look or wait."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal
from urllib.parse import urlsplit

import msgspec

from environments.browser_use.action import Action, ActionError

if TYPE_CHECKING:
    from environments.browser_use.tabs import Tabs

__all__ = ["Back", "Forward", "Goto", "Reload", "Screenshot", "Tab", "Wait", "address"]

SCHEMES = {"http", "https", "data", "about"}
"""What may be opened. The files of the machine and the browser's own pages are not the web."""

_HOST = re.compile(r"(?:localhost|\[[0-9a-fA-F:]+\]|[^\s/:?#]+\.[^\s/:?#]+)(?::\d+)?(?:[/?#]|$)")


class Goto(Action, frozen=True, kw_only=True):
    """Open a URL in the active tab."""

    tool: ClassVar[str] = "browser_goto"
    url: str

    def describe(self) -> str:
        return f"go to {self.url}"

    async def perform(self, tabs: Tabs) -> None:
        await tabs.goto(address(self.url))


class Back(Action, frozen=True, kw_only=True):
    """Go back to the page before in the active tab."""

    tool: ClassVar[str] = "browser_back"

    def describe(self) -> str:
        return "go back"

    async def perform(self, tabs: Tabs) -> None:
        await tabs.back()


class Forward(Action, frozen=True, kw_only=True):
    """Go forward again in the active tab."""

    tool: ClassVar[str] = "browser_forward"

    def describe(self) -> str:
        return "go forward"

    async def perform(self, tabs: Tabs) -> None:
        await tabs.forward()


class Reload(Action, frozen=True, kw_only=True):
    """Load the page of the active tab again."""

    tool: ClassVar[str] = "browser_reload"

    def describe(self) -> str:
        return "reload"

    async def perform(self, tabs: Tabs) -> None:
        await tabs.reload()


class Tab(Action, frozen=True, kw_only=True):
    """Open a new tab, or bring one to the front, or close one (without index the active one). Replies
    list the tabs with their indexes."""

    tool: ClassVar[str] = "browser_tab"
    action: Literal["new", "focus", "close"]
    index: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if self.action == "focus" and self.index is None:
            raise ValueError("focus needs an index")

    def describe(self) -> str:
        return f"{self.action} tab" + ("" if self.index is None else f" {self.index}")

    async def perform(self, tabs: Tabs) -> None:
        if self.action == "new":
            await tabs.new_tab()
        elif self.action == "focus":
            await tabs.focus(self.index or 0)
        else:
            await tabs.close_tab(self.index)


class Wait(Action, frozen=True, kw_only=True):
    """Wait, for a page that takes its time."""

    tool: ClassVar[str] = "browser_wait"
    seconds: Annotated[float, msgspec.Meta(ge=0, le=30)]

    def describe(self) -> str:
        return f"wait {self.seconds:g} s"

    async def perform(self, tabs: Tabs) -> None:
        await asyncio.sleep(self.seconds)


class Screenshot(Action, frozen=True, kw_only=True):
    """See the page as it is now. The browser is open on the task's start page from the beginning."""

    tool: ClassVar[str] = "browser_screenshot"

    def describe(self) -> str:
        return "look at the page"

    async def perform(self, tabs: Tabs) -> None:
        """The reply of every tool shows the page: there is nothing else to do."""


def address(text: str) -> str:
    """What people type into an address bar as a URL. Raises ActionError for what is none."""
    text = text.strip()
    if _HOST.match(text):
        local = re.match(r"(?:[^/:?#]+\.)?localhost\b|127\.|\[", text)
        text = f"{'http' if local else 'https'}://{text}"
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme.lower() not in SCHEMES or (parts.scheme[:4] == "http" and not parts.netloc):
        raise ActionError(f"not the address of a web page: {text[:200]!r}")
    return text
