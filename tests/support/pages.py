"""Web pages for tests of the browser, served on loopback."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from environments.browser_use.chromium import NAMES
from environments.browser_use.task import BrowserTask
from environments.browser_use.tools import TOOLS

__all__ = ["Handler", "browser_task", "needs_chromium", "serve", "titled"]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def needs_chromium() -> pytest.MarkDecorator:
    """Skips where there is no Chromium or no Playwright."""
    missing = "" if any(map(shutil.which, NAMES)) else "no Chromium on PATH"
    try:
        import playwright.async_api  # noqa: F401
    except ImportError:
        missing = "Playwright is not installed"
    return pytest.mark.skipif(bool(missing), reason=missing)


def titled(title: str, body: str) -> str:
    """A page whose lines don't move with the fonts of the machine."""
    style = "<style>body{margin:0;font:16px/20px monospace}button,input,select{height:30px}</style>"
    return f"<!doctype html><meta charset=utf-8><title>{title}</title>{style}<body>{body}"


@asynccontextmanager
async def serve(pages: Mapping[str, str | Handler]) -> AsyncIterator[str]:
    """Path -> page or handler; the address without a slash at its end."""

    def handler(page: str) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(text=page, content_type="text/html")

        return answer

    app = web.Application()
    for path, page in pages.items():
        app.router.add_route("*", path, handler(page) if isinstance(page, str) else page)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def browser_task(start: str, **fields: Any) -> BrowserTask:
    return BrowserTask(
        **{"id": "web", "prompt": "Do it.", "tools": TOOLS, "start": start, **fields}
    )
