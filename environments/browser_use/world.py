"""One episode's world: a browser context with tabs in it, and perhaps sites that only it can reach."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.async_api import BrowserContext
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from environments.browser_use.action import Action, ActionError
from environments.browser_use.locate import locate
from environments.browser_use.observation import Observation, glance, observe
from environments.browser_use.tabs import BLANK, Tabs
from environments.browser_use.task import BrowserTask
from environments.browser_use.tools import ACTIONS, parse
from environments.browser_use.viewport import Limits
from environments.browser_use.walls import Walls
from rollout.environment import Surface, World
from rollout.errors import EnvironmentFault
from rollout.sandbox import Sandbox
from rollout.types import JsonObject, ToolReply

if TYPE_CHECKING:
    from environments.browser_use.sites import Sites

__all__ = ["BrowserWorld"]

GATE = "gate"
"""The built-in site that has a captcha and a login."""

LOOKS = 3
"""How often a page is looked at that goes elsewhere at that very moment."""


class BrowserWorld(World):
    """Answers the tools of `tools.TOOLS`, one call after the other."""

    def __init__(
        self, task: BrowserTask, context: BrowserContext, sites: Sites | None, limits: Limits
    ) -> None:
        files = {name: Path(path) for name, path in task.files.items()}
        self.surface = Surface(
            prompt=task.prompt,
            tools=task.tools,
            files={name: path.read_bytes() for name, path in files.items()},
        )
        self.tabs = Tabs(context, files, limits)
        self._context = context
        self._sites = sites
        self._start = sites.url(task.start) if sites else task.start
        self._walls = _walls(task, self._start)
        self._broken: set[str] = set()
        self._steps: list[JsonObject] = []
        self._calls = 0
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Open the start page. Raises EnvironmentFault when it can't be opened."""
        begun = self.tabs.activity.begin()
        await self.tabs.open()
        try:
            if self._start != BLANK:
                await self.tabs.goto(self._start)
            await self.tabs.rest(begun)
            await self.tabs.forget_history()
            with contextlib.suppress(PlaywrightError, TimeoutError):
                page = self.tabs.active
                self._walls.arrive(page.url, await glance(self.tabs, page))
        except (ActionError, PlaywrightError) as error:
            raise EnvironmentFault(f"{self._start}: {_first_line(error)}") from None

    async def close(self) -> None:
        await self.tabs.close()

    async def call(self, name: str, arguments: Any) -> ToolReply:
        """Do one thing in the browser, and show what has become of the page.

        409 is an action that could not be done. Raises EnvironmentFault when the browser is gone.
        """
        async with self._lock:
            index, self._calls = self._calls, self._calls + 1
            if name not in ACTIONS:
                return await super().call(name, arguments)
            try:
                action = parse(name, arguments)
            except ValueError as error:
                return ToolReply(status=422, body={"error": f"bad arguments: {error}"})
            for text in filter(lambda given: isinstance(given, str), arguments.values()):
                self._walls.hear(text)
            failed = await self._do(action)
            seen, broken = await self._look()
            return self._reply(index, seen, "; ".join(filter(None, (failed, broken))))

    async def locate(self, target: str) -> JsonObject:
        """`x` and `y` of a target in the active tab: see `locate.py` for what it may say."""
        async with self._lock:
            await self.tabs.ensure()
            return await locate(self.tabs.active, target, self.tabs.limits)

    async def snapshot(self, sandbox: Sandbox) -> JsonObject:
        """The sites' state, each step's page, the tabs, the downloads, and what blocked the agent."""
        async with self._lock:
            await self.tabs.downloads.settle(self.tabs.limits.settle)
            last, _ = await self._look()
            return {
                "site": self._sites.state() if self._sites else {},
                "steps": self._steps,
                "tabs": last.tabs,
                "downloads": self.tabs.downloads.files,
                "blocked": self._walls.blocked,
                "start": self._start,
            }

    async def _do(self, action: Action) -> str:
        """Act, and wait for the page; what went wrong, for the agent to read."""
        tabs = self.tabs
        begun = tabs.activity.begin()
        try:
            async with asyncio.timeout(tabs.limits.call):
                await tabs.ensure()
                page = tabs.active
                try:
                    await action.perform(tabs)
                except PlaywrightError:
                    # A page may close itself on a click, before the click is over.
                    if not page.is_closed() or not self._connected:
                        raise
                await tabs.rest(begun)
        except ActionError as error:
            return str(error)
        except (TimeoutError, PlaywrightTimeout):
            return f"{action.describe()}: the page did not react in time"
        except PlaywrightError as error:
            self._check_browser()
            return f"{action.describe()}: {_first_line(error)}"
        return ""

    async def _look(self) -> tuple[Observation, str]:
        """The page as it is, and what is wrong with it.

        One that crashed or hangs is opened again, and given up where that is no help or was done before:
        an agent can open pages that never answer, and must get on. Raises EnvironmentFault where it is
        a built-in site's, or where not even an empty page shows.
        """
        if seen := await self._seen():
            return seen, ""
        await self.tabs.ensure()
        url = self.tabs.active.url
        if url not in self._broken:
            self._broken.add(url)
            await self._replace(url)
            if seen := await self._seen():
                self.tabs.tell("the page crashed or hung, and was opened again in a new tab")
                return seen, ""
        if self._sites and self._sites.serve(url):
            raise EnvironmentFault(f"a page of a built-in site crashes or hangs: {url}")
        await self._replace(BLANK)
        if seen := await self._seen():
            return seen, f"the page crashed or hung again and was given up: {url[:200]}"
        raise EnvironmentFault("the browser shows nothing, not even an empty page")

    async def _seen(self) -> Observation | None:
        """The page as it is; None for one that crashed or hangs."""
        for _ in range(LOOKS):
            try:
                seen = await observe(self.tabs)
            except TimeoutError:
                if not self.tabs.activity.navigating:
                    return None
                await self.tabs.rest(0.0)
            except PlaywrightError as error:
                self._check_browser()
                if "crash" in error.message.lower():
                    return None
            else:
                self._walls.see(seen.url, seen.look)
                return seen
        return None

    async def _replace(self, url: str) -> None:
        """A new tab in place of the broken one; whether it shows anything, the next look tells."""
        try:
            await self.tabs.replace(url)
        except (ActionError, PlaywrightError, TimeoutError):
            self._check_browser()

    def _reply(self, index: int, seen: Observation, error: str) -> ToolReply:
        problem = {"error": error} if error else {}
        self._steps.append({"tool_call": index, "url": seen.url, "title": seen.title, **problem})
        return ToolReply(
            status=409 if error else 200,
            body={**seen.body(self.tabs.take_events()), **problem},
            images=(seen.screenshot,),
        )

    @property
    def _connected(self) -> bool:
        browser = self._context.browser
        return browser is not None and browser.is_connected()

    def _check_browser(self) -> None:
        if not self._connected:
            raise EnvironmentFault("the browser crashed or was disconnected")


def _walls(task: BrowserTask, start: str) -> Walls:
    """Built-in sites refuse nobody, except the one that plays a gate."""
    if task.sites and GATE not in task.sites:
        start = ""
    return Walls(start, task.prompt, ours=bool(task.sites))


def _first_line(error: Exception) -> str:
    """What Playwright says, without the call that it names first and the log that follows."""
    line = str(error).partition("\n")[0].strip() or type(error).__name__
    call, found, rest = line.partition(": ")
    return rest if found and "." in call and " " not in call else line
