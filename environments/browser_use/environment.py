"""Tasks on the web: opens a browser and, where a task has them, sites of its own; grades what is left.

Grading by a verifier looks at the sites' state and the answer. Without one, a judge is asked by a
protocol. A site that keeps the agent out (captcha, bot check, login) leaves the attempt ungraded.
"""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, ClassVar

import msgspec

from environments.browser_use.evidence import evidence
from environments.browser_use.task import BrowserTask
from environments.browser_use.verify import verify
from environments.browser_use.viewport import HEIGHT, WIDTH, Limits
from rollout.environment import Environment, World
from rollout.errors import Blocked, EnvironmentFault, UsageError
from rollout.judge import Judge
from rollout.protocol import Evidence, Protocol
from rollout.types import Grade, JsonObject, Task, Trace

if TYPE_CHECKING:
    from environments.browser_use.browser import Browsers
    from environments.browser_use.sites import Sites

__all__ = ["BrowserUse"]

LOCALES = {"zh": "zh-CN"}
"""The browser's language, by the task's; otherwise en-US."""


class BrowserUse(Environment):
    """Opens a browser context for each attempt."""

    surfaces: ClassVar[tuple[str, ...]] = ("native", "mcp")
    """Not `skill`: what curl prints is text, and the agent would never see the page."""

    def __init__(
        self, browser: str = "", protocol: Protocol | None = None, limits: Limits | None = None
    ) -> None:
        """`browser`: "" finds a Chromium, else a path, `cdp:URL`, or `browser-use-cloud`.

        `protocol` asks the judge about tasks without a verifier. Raises UsageError for a bad address.
        """
        self._spec = browser
        self._protocol = protocol
        self._limits = limits or Limits()
        self._opened: Browsers | None = None

    async def prepare(self) -> None:
        """Have a browser ready. Raises UsageError when there can be none."""
        try:
            await self.browsers.prepare()
        except EnvironmentFault as fault:
            raise UsageError(f"--browser {self._named()}: {fault}") from fault

    async def close(self) -> None:
        """End the browser that was started, or the connection to it."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        """The world of one attempt, its start page open; `seed` decides how its sites misbehave."""
        from environments.browser_use.browser import HungBrowser, bounded
        from environments.browser_use.world import BrowserWorld

        browser_task = _browser_task(task)
        async with AsyncExitStack() as stack:
            sites: Sites | None = None
            if browser_task.sites:
                from environments.browser_use.sites import open_sites

                opened = open_sites(browser_task.sites, seed, browser_task.faults)
                sites = await stack.enter_async_context(opened)
            locale = LOCALES.get(task.language, "en-US")
            context = await stack.enter_async_context(self.browsers.context(locale))
            world = BrowserWorld(browser_task, context, sites, self._limits)
            stack.push_async_callback(world.close)
            try:
                await bounded(world.open(), self._limits.call)
            except TimeoutError:
                limit = f"{self._limits.call:g} s"
                raise HungBrowser(f"the browser did not open the start page in {limit}") from None
            yield world

    async def grade(self, task: Task, trace: Trace, judge: Judge | None = None) -> Grade:
        """By the task's verifier, else by the judge. Raises Blocked, JudgeError, EnvironmentFault."""
        browser_task = _browser_task(task)
        if blocked := trace.world.get("blocked"):
            raise Blocked(f"the site kept the agent out: {blocked}")
        if browser_task.verifier:
            return verify(browser_task, trace)
        if self._protocol is None or judge is None:
            raise EnvironmentFault(f"{task.id}: nothing to grade with: no verifier, no judge")
        verdict = await self._protocol.verdict(evidence(browser_task, trace), judge)
        return Grade(
            score=verdict.score,
            passed=verdict.score >= 1.0,
            notes=(verdict.reasoning,) if verdict.reasoning else (),
            evidence={"verdict": msgspec.to_builtins(verdict)},
        )

    def evidence(self, task: Task, trace: Trace) -> Evidence:
        return evidence(_browser_task(task), trace)

    def fingerprint(self) -> JsonObject:
        """The browser, the viewport, and who judges."""
        which = self._opened.fingerprint() if self._opened else {"browser": self._named()}
        protocol = self._protocol.fingerprint() if self._protocol else {}
        viewport = f"{WIDTH}x{HEIGHT}"
        return {"environment": "browser_use", **which, "viewport": viewport, "protocol": protocol}

    @property
    def browsers(self) -> Browsers:
        """Where its contexts come from. Raises UsageError."""
        if self._opened is None:
            if importlib.util.find_spec("playwright") is None:
                raise UsageError("the browser needs Playwright: pip install 'anyharness[browser]'")
            from environments.browser_use.choice import choose

            self._opened = choose(self._spec)
        return self._opened

    def _named(self) -> str:
        """What the user asked for, without what is secret in an address."""
        from environments.browser_use.cdp import redacted

        kind, colon, url = self._spec.partition(":")
        return f"cdp:{redacted(url)}" if (kind, colon) == ("cdp", ":") else self._spec


def _browser_task(task: Task) -> BrowserTask:
    if not isinstance(task, BrowserTask):
        raise EnvironmentFault(f"{task.id}: not a task of the browser")
    return task
