"""Makes the report that docs/reports.md shows, and its screenshots in docs/images/. Run by hand:

    python docs/make_gallery.py            # real runs with policies of known quality, a few minutes
    python docs/make_gallery.py --report report   # screenshots of a report that is there

Needs Chromium, playwright, and for the runs Codex (npm ci). No model is asked.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

from environments.browser_use.chromium import find

IMAGES = Path(__file__).with_name("images")
RUNS = {
    "react-0.9": ("--harness", "react", "--model", "noisy-reference:p=0.9"),
    "react-0.6": ("--harness", "react", "--model", "noisy-reference:p=0.6"),
    "codex-0.9": ("--harness", "codex", "--model", "noisy-reference:p=0.9"),
    "codex-0.6": ("--harness", "codex", "--model", "noisy-reference:p=0.6", "--tools", "skill"),
}
"""The last one has another tool surface: the report says that it can't be compared."""
SHOTS = {
    "report-answer": ("overview", "light", 1080, 720),
    "report-reliability": ("reliability", "dark", 1080, 900),
    "report-behaviour": ("behaviour", "light", 1080, 860),
    "report-episode": ("episode/4", "light", 390, 844),
}
"""Name -> place on the page, theme, width and height in CSS pixels."""
LIMIT = 300_000
"""Milliseconds for a page to be drawn: the machine may be busy."""


def make_report(folder: Path) -> Path:
    """Runs the suite, and the report over it. The path of index.html."""
    suite = (sys.executable, "-m", "suites.claweval", "--tasks", "16", "--quiet")
    for name, options in RUNS.items():
        subprocess.run((*suite, *options, "--out", str(folder / name)), check=True)
    runs = [str(folder / name) for name in RUNS]
    subprocess.run((sys.executable, "-m", "reports", *runs, "--out", str(folder)), check=True)
    return folder / "index.html"


def take_screenshots(page_file: Path) -> None:
    """One picture for each of `SHOTS`."""
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find(), args=["--no-sandbox"])
        for name, (place, theme, width, height) in SHOTS.items():
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=theme)
            page.set_default_timeout(LIMIT)
            page.goto(f"{page_file.resolve().as_uri()}#{place}")
            _settle(page)
            if place.startswith("episode"):
                grade = page.locator("dialog h3", has_text="Grade")
                grade.evaluate("(heading) => heading.scrollIntoView({ block: 'center' })")
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()
        browser.close()


def _settle(page: Any) -> None:
    """Until what can be seen is drawn: charts in view, an episode from its shard."""
    page.wait_for_load_state("networkidle")
    page.wait_for_function(
        """() => !document.body.innerText.includes("Loading …") &&
        [...document.querySelectorAll("[data-figure]")].every((place) => {
          const { top, bottom } = place.getBoundingClientRect();
          return top > innerHeight || bottom < 0 || place.querySelector("svg.main-svg");
        })"""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, help="folder of a report, instead of new runs")
    given = parser.parse_args().report
    with TemporaryDirectory() as made:
        take_screenshots(given / "index.html" if given else make_report(Path(made)))


if __name__ == "__main__":
    main()
