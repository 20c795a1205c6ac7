"""Small sites of our own for a browser to act on: loopback only, a server an episode.

Sites: {shop, travel, forms, tracker, library, news, gate}. Each has its host, `SITE.localhost`, which
browsers resolve to loopback without asking anyone. `faults.py` says how they can misbehave.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from environments.browser_use.sites.faults import Faults, parse_faults
from environments.browser_use.sites.forms import Forms
from environments.browser_use.sites.gate import Gate
from environments.browser_use.sites.library import Library
from environments.browser_use.sites.news import News
from environments.browser_use.sites.shop import Shop
from environments.browser_use.sites.site import Site
from environments.browser_use.sites.tracker import Tracker
from environments.browser_use.sites.travel import Travel
from rollout.errors import UsageError
from rollout.types import JsonObject

__all__ = ["SITES", "Sites", "check_start", "open_sites", "sources"]

SITES: dict[str, type[Site]] = {
    site.name: site for site in (Forms, Gate, Library, News, Shop, Tracker, Travel)
}


HERE = Path(__file__).parent


class Sites:
    """The sites of one episode, while they are served."""

    def __init__(self, sites: Sequence[Site], port: int) -> None:
        self._sites = {site.name: site for site in sites}
        self.port = port

    def url(self, start: str) -> str:
        """The address of `SITE:/path`; any other address as it is. Raises UsageError."""
        check_start(start, tuple(self._sites))
        name, _, path = start.partition(":")
        return f"http://{name}.localhost:{self.port}{path}" if name in self._sites else start

    def serve(self, url: str) -> bool:
        """Whether a URL is a page of these sites."""
        hosts = {f"{name}.localhost:{self.port}" for name in self._sites}
        return urlsplit(url).netloc in hosts

    def state(self) -> JsonObject:
        """Site -> what it remembers: for verifiers, never over HTTP."""
        return {name: site.snapshot() for name, site in self._sites.items()}


@asynccontextmanager
async def open_sites(names: Sequence[str], seed: int, faults: JsonObject) -> AsyncIterator[Sites]:
    """Serve fresh instances of these sites on one port. Raises UsageError for unknown ones."""
    for name in names:
        _check_name(name)
    mischief = parse_faults(faults, tuple(names))
    sites = [SITES[name](seed, mischief.get(name, Faults())) for name in dict.fromkeys(names)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        front = web.Application()
        for site in sites:
            front.add_domain(f"{site.name}.localhost:{port}", site.application())
        # Browsers hold connections open; nobody waits for them.
        runner = web.AppRunner(front, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            yield Sites(sites, port)
        finally:
            await runner.cleanup()


def sources(names: Collection[str]) -> list[Path]:
    """The files that make these sites what they are: their own (`NAME*`), and those that all share."""
    found = [path for kind in ("*.py", "data/*", "static/*") for path in HERE.glob(kind)]
    others = SITES.keys() - set(names)
    return sorted(path for path in found if path.stem.partition("_")[0] not in others)


def check_start(start: str, names: Sequence[str]) -> None:
    """Raises UsageError for a `SITE:/path` whose site is not among the names."""
    name, colon, path = start.partition(":")
    if colon and path.startswith("/") and not path.startswith("//") and name not in names:
        raise UsageError(
            f"start page {start!r}: the task has no site {name!r}; add it to its sites"
        )


def _check_name(name: str) -> None:
    if name not in SITES:
        close = get_close_matches(name, SITES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(SITES)}"
        raise UsageError(f"no built-in site {name!r}; {hint}")
