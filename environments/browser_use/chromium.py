"""A Chromium on this machine: found, started with a profile of its own, and ended without a trace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from environments.browser_use.guard import LOG
from rollout.errors import EnvironmentFault, UsageError
from rollout.processes import spawn

__all__ = ["NAMES", "Chromium", "find"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""What the program is called, in order of preference."""

GUARD = Path(__file__).with_name("guard.py")
START_LIMIT = 60.0
"""Seconds until it has to listen: a cold start on a busy machine takes its time."""

FLAGS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--disable-back-forward-cache",  # a page that comes back from it is unknown to Playwright
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-features=Translate,MediaRouter,OptimizationHints,HttpsUpgrades,PaintHolding",
    "--disable-gpu",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-renderer-backgrounding",
    "--disable-search-engine-choice-screen",
    "--disable-smooth-scrolling",  # a screenshot must show where a scroll ends, not its middle
    "--disable-sync",
    "--force-color-profile=srgb",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-service-autorun",
    "--password-store=basic",
    "--window-size=1280,720",
)

PASSED_ON = {"PATH", "LANG", "LC_ALL", "TZ", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
"""Environment variables that Chromium gets, in capitals or not. Keys stay with us."""


def find(named: str = "") -> str:
    """The path of the program: the named one, else the first of `NAMES` on PATH.

    Raises UsageError when there is none.
    """
    for name in (named,) if named else NAMES:
        if found := shutil.which(os.path.expanduser(name)):
            return found
    if named:
        raise UsageError(f"--browser {named}: no such program, nor cdp:URL, nor browser-use-cloud")
    raise UsageError(
        "no Chromium found: install it (apt install chromium), or name one with --browser PATH, "
        "--browser cdp:URL or --browser browser-use-cloud"
    )


class Chromium:
    """One running process, and the folder that holds all its files."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, endpoint: str) -> None:
        self.process = process
        """Its guard: Chromium is the one child."""
        self.folder = folder
        self.endpoint = endpoint
        """The WebSocket address of its DevTools."""

    @classmethod
    async def start(cls, executable: str) -> Chromium:
        """Start it and wait until it listens. Raises EnvironmentFault when it does not come up."""
        folder = Path(tempfile.mkdtemp(prefix="anyharness-chromium-"))
        argv = [executable, *FLAGS, f"--user-data-dir={folder / 'profile'}"]
        if os.geteuid() == 0:
            argv.append("--no-sandbox")  # its sandbox refuses to start for root
        process = await spawn(
            *(sys.executable, "-I", "-S", str(GUARD), str(folder), *argv, "about:blank"),
            stdin=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=_environment(folder),
        )
        try:
            endpoint = await _endpoint(process, folder)
        except BaseException:
            await _end(process)
            raise
        return cls(process, folder, endpoint)

    async def stop(self) -> None:
        """End it, and wait until its processes and its folder are gone."""
        await _end(self.process)


async def _endpoint(process: asyncio.subprocess.Process, folder: Path) -> str:
    """What DevToolsActivePort says as soon as it is there: a port, and a path."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + START_LIMIT
    port = folder / "profile" / "DevToolsActivePort"
    log = b""
    while clock() < deadline and process.returncode is None:
        with contextlib.suppress(FileNotFoundError):
            log = (folder / LOG).read_bytes()
            lines = port.read_text("utf-8").splitlines()
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        await asyncio.sleep(0.02)
    raise EnvironmentFault(f"Chromium did not start: {_last_words(log)}")


def _last_words(log: bytes) -> str:
    text = log.decode(errors="replace")
    if "No usable sandbox" in text:
        return "it has no usable sandbox: allow unprivileged user namespaces, or run as root"
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else f"it said nothing for {START_LIMIT:.0f} s"


async def _end(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    await asyncio.shield(process.wait())


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.upper() in PASSED_ON}
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    return {**kept, **home, "TMPDIR": str(folder)}
