"""Files that pages hand out: kept by the browser for the time of the episode, told by name and size."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from playwright.async_api import Download
from playwright.async_api import Error as PlaywrightError

from rollout.types import JsonObject

__all__ = ["Downloads"]


class Downloads:
    """The downloads of an episode. The file of a remote browser stays there: its size is unknown (-1)."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.files: list[JsonObject] = []
        """`name` and `size` in bytes, in the order in which they were complete."""
        self._tell = tell
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, download: Download) -> None:
        """Follow a download to its end."""
        task = asyncio.create_task(self._follow(download))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def settle(self, seconds: float) -> None:
        """Wait for those under way, but no longer."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=seconds)
            if late:
                self._tell(f"{len(late)} downloads are not complete")

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _follow(self, download: Download) -> None:
        name = download.suggested_filename
        try:
            if failure := await download.failure():
                self._tell(f"the download of {name} failed: {failure}")
                return
            size = _size(await download.path())
        except PlaywrightError:
            size = -1
        self.files.append({"name": name, "size": size})
        self._tell(f"downloaded {name}" + (f" ({size} bytes)" if size >= 0 else ""))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1
