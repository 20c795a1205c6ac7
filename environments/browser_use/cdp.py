"""Addresses of browsers that somebody else runs: found out, tried again, and never shown with a key."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp

from rollout.errors import EnvironmentFault, UsageError
from rollout.gateway.retry import Retry
from rollout.gateway.upstream import Transient
from rollout.types import JsonObject

__all__ = ["RETRY", "TIMEOUT", "check_address", "discover", "persistently", "redacted"]

T = TypeVar("T")

RETRY = Retry(tries=5, budget=60.0)
TIMEOUT = aiohttp.ClientTimeout(total=20)

_AFTER_HOST = re.compile(r"^(\w+://)(?:[^/@]*@)?([^/?#]+).*$", re.DOTALL)


def check_address(url: str) -> str:
    """The address, if it can be one of a browser. Raises UsageError otherwise."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
        raise UsageError(
            f"--browser cdp:{redacted(url)}: not an address; "
            "give cdp:http://HOST:PORT or cdp:ws://HOST:PORT/devtools/browser/ID"
        )
    return url


def redacted(url: str) -> str:
    """Scheme, host and port. Paths, queries and logins of such addresses are credentials."""
    return _AFTER_HOST.sub(r"\1\2", url)


async def discover(url: str) -> str:
    """The WebSocket address behind a discovery base (`GET BASE/json/version`); ws addresses as they are.

    Asked again while the server is busy or away (429, 5xx, no answer). Raises EnvironmentFault.
    """
    if urlsplit(url).scheme in ("ws", "wss"):
        return url
    return await persistently(lambda: _ask(url), redacted(url))


async def persistently(ask: Callable[[], Awaitable[T]], who: str) -> T:
    """The answer, asked for again after each Transient. Raises EnvironmentFault when it stays away."""
    begin, tries = time.monotonic(), 0
    while True:
        tries += 1
        try:
            return await ask()
        except (aiohttp.ClientError, TimeoutError) as error:
            failure = Transient(type(error).__name__)  # not its text, which may repeat the address
        except Transient as error:
            failure = error
        pause = RETRY.delay(tries, time.monotonic() - begin, failure)
        if pause is None:
            raise EnvironmentFault(f"no browser at {who}: {failure}")
        await asyncio.sleep(pause)


async def _ask(url: str) -> str:
    base, _, query = url.partition("?")
    version = f"{base.rstrip('/')}/json/version" + (f"?{query}" if query else "")
    try:
        async with aiohttp.ClientSession(timeout=TIMEOUT) as client, client.get(version) as reply:
            if reply.status == 429 or reply.status >= 500:
                raise Transient(f"it answers {reply.status}")
            if reply.status >= 400:
                raise EnvironmentFault(f"{redacted(url)} refuses us: it answers {reply.status}")
            body: JsonObject = await reply.json(content_type=None)
            return str(body["webSocketDebuggerUrl"])
    except (KeyError, TypeError, ValueError):
        raise EnvironmentFault(f"{redacted(url)} is not the address of a browser") from None
