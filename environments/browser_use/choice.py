"""What `--browser` means."""

from __future__ import annotations

from environments.browser_use.browser import Browsers, LocalBrowser, RemoteBrowser
from environments.browser_use.cloud import CloudBrowsers

__all__ = ["choose"]


def choose(spec: str) -> Browsers:
    """Nothing or a path: a Chromium here; `cdp:URL`: one that runs; `browser-use-cloud`: a rented one.

    Raises UsageError for an address that is none, or a key that is missing.
    """
    if spec.startswith("cdp:"):
        return RemoteBrowser(spec.removeprefix("cdp:"))
    if spec == "browser-use-cloud":
        return CloudBrowsers.from_environment()
    return LocalBrowser(spec)
