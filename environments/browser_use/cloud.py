"""Browser-Use Cloud: a rented browser for each episode (docs.browser-use.com/cloud/api-v4/browsers).

A session is stopped when its episode ends; leaving its CDP connection does not stop it. What we can't
stop, because we are killed, `cloud_guard.py` does. The key comes from BROWSER_USE_API_KEY and is shown
nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from playwright.async_api import BrowserContext

from environments.browser_use.browser import Browsers, Driver, close_quietly, new_context
from environments.browser_use.cdp import TIMEOUT, discover, persistently
from environments.browser_use.viewport import HEIGHT, WIDTH
from rollout.errors import EnvironmentFault, UsageError
from rollout.gateway.upstream import Transient
from rollout.processes import spawn
from rollout.types import JsonObject

__all__ = ["API", "KEY", "CloudBrowsers"]

API = "https://api.browser-use.com/api/v4"
KEY = "BROWSER_USE_API_KEY"
GUARD = Path(__file__).with_name("cloud_guard.py")

SESSION_LIMIT = 60
"""Minutes after which a session ends by itself; what is not used is not paid."""

SERVICE = "Browser-Use Cloud"

UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Failures before anything was sent."""

BUSY = frozenset((429, 503))
"""Answers by which the service takes nothing on."""

AWAY = frozenset((429, *range(500, 600)))
"""Answers that change nothing for what can be asked twice."""

LOST = (
    f"a session may have begun that nobody knows of; it ends by itself after {SESSION_LIMIT} minutes,"
    " or stop it on the dashboard"
)


class CloudBrowsers(Browsers):
    """Creates a session, gives its own first context to the episode, and stops it."""

    def __init__(self, key: str, api: str) -> None:
        """`api` is the address of the API. Raises UsageError without a key."""
        if not key:
            raise UsageError(f"--browser browser-use-cloud: set {KEY} to your key")
        self._key = key
        self._api = api
        self._driver = Driver()
        self._guard: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    @classmethod
    def from_environment(cls) -> CloudBrowsers:
        return cls(os.environ.get(KEY, ""), API)

    async def prepare(self) -> None:
        """Open and close one session: only that tells whether key, plan and balance will do."""
        async with self.context(""):
            pass

    @asynccontextmanager
    async def context(self, locale: str) -> AsyncIterator[BrowserContext]:
        """The session's first context: a new one would lose what makes its browser pass for a person's.

        Its language is the session's own, whatever the `locale`.
        """
        async with self._session() as cdp:
            browser = await self._driver.connect(await discover(cdp))
            try:
                yield (
                    browser.contexts[0] if browser.contexts else await new_context(browser, locale)
                )
            finally:
                await close_quietly(browser)

    async def close(self) -> None:
        await self._driver.stop()
        guard, self._guard = self._guard, None
        if guard is not None and guard.stdin is not None:
            guard.stdin.close()
            await guard.wait()

    def fingerprint(self) -> JsonObject:
        return {"browser": SERVICE, "api": self._api.rpartition("/")[2]}

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[str]:
        """The CDP address of a new session, stopped at the end even where that end is a cancellation."""
        async with self._lock:
            await self._start_guard()
        creating = asyncio.ensure_future(self._create())
        try:
            created = await asyncio.shield(creating)
        except asyncio.CancelledError:
            with contextlib.suppress(EnvironmentFault):  # then there is nothing to stop
                await self._stop((await creating)["id"])
            raise
        try:
            yield created["cdpUrl"]
        finally:
            await asyncio.shield(asyncio.ensure_future(self._stop(created["id"])))

    async def _create(self) -> dict[str, str]:
        """Create a session, asked for again only where the service can't have created one already."""
        order: JsonObject = {
            "timeout": SESSION_LIMIT,
            "browserScreenWidth": WIDTH,
            "browserScreenHeight": HEIGHT,
        }

        async def ask() -> JsonObject:
            try:
                return await self._send("POST", "/browsers", order, BUSY)
            except UNSENT:
                raise
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                raise EnvironmentFault(f"{SERVICE}: {type(error).__name__}: {LOST}") from None

        created = await persistently(ask, SERVICE)
        if not created.get("id") or not created.get("cdpUrl"):
            raise EnvironmentFault(f"{SERVICE} created a session without id or cdpUrl")
        session = {field: str(created[field]) for field in ("id", "cdpUrl")}
        self._tell(f"+{session['id']}")
        return session

    async def _stop(self, session: str) -> None:
        """Stop a session; when that fails the guard still knows it, and tries again at the end."""
        path, order = f"/browsers/{session}", {"action": "stop"}
        with contextlib.suppress(EnvironmentFault):
            await persistently(lambda: self._send("PATCH", path, order, AWAY, gone=True), SERVICE)
            self._tell(f"-{session}")

    async def _send(
        self,
        method: str,
        path: str,
        body: JsonObject,
        again: Container[int],
        *,
        gone: bool = False,
    ) -> JsonObject:
        """Ask the API once. Raises Transient for the statuses `again`, EnvironmentFault for other
        refusals, and what aiohttp raises. With `gone`, a 404 is what was wanted."""
        headers = {"X-Browser-Use-API-Key": self._key}
        async with aiohttp.ClientSession(timeout=TIMEOUT, headers=headers) as client:
            async with client.request(method, self._api + path, json=body) as reply:
                if reply.status in again:
                    raise Transient(f"it answers {reply.status}")
                if gone and reply.status == 404:
                    return {}
                if reply.status >= 400:
                    raise EnvironmentFault(f"{SERVICE} {_refusal(reply.status)}")
                answer: JsonObject = await reply.json()
                return answer

    async def _start_guard(self) -> None:
        if self._guard is None:
            self._guard = await spawn(
                *(sys.executable, "-I", "-S", str(GUARD)),
                stdin=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            self._tell(json.dumps({"api": self._api, "key": self._key}))

    def _tell(self, line: str) -> None:
        assert self._guard is not None
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{line}\n".encode())


def _refusal(status: int) -> str:
    """Why, without its words: they may repeat what was sent."""
    reasons = {
        401: f"does not know the key in {KEY}",
        402: "wants money: the balance is used up",
        403: "does not let this key create browsers: look at your plan",
    }
    if status >= 500:
        return f"answers {status}: {LOST}"
    return reasons.get(status, f"refuses: it answers {status}")
