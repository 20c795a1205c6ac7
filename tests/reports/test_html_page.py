"""The page in a real Chromium, opened from disk and offline, as people open it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.recorded_runs import (
    HOSTILE,
    call,
    episode,
    hostile_trace,
    screen_trace,
    write_run,
)

from environments.browser_use.chromium import find
from reports.catalogue import Report
from reports.html import write_report
from reports.load import load_runs
from reports.verdict import verdict
from rollout.errors import UsageError
from rollout.types import Trace

playwright = pytest.importorskip("playwright.async_api", reason="pip install playwright")
pytestmark = pytest.mark.asyncio(loop_scope="module")

LIMIT = 180_000
"""Milliseconds: a busy machine takes its time."""

RESET = """() => {
  document.querySelector("dialog").close();
  document.querySelectorAll("details").forEach((d) => { d.open = false });
  filters.reset();
  filters.dispatchEvent(new Event("input"));
  localStorage.clear();
  setTheme("light");
  scrollTo(0, 0);
}"""

CONTRAST = """() => {
  const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const parse = (c) => [...c.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c[3] === 1) return c;
    }
    return [255, 255, 255, 1];
  };
  const bad = [];
  for (const e of document.querySelectorAll("body *:not(svg *):not(script):not(style):not(option)")) {
    const text = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!text || !e.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${e.className} ${ratio.toFixed(2)} ${e.textContent.slice(0, 40)}`);
  }
  return bad;
}"""


def build(folders: list[Path], out: Path) -> Path:
    with load_runs(folders) as runs:
        return write_report(runs, Report(runs).tables(), out, answer=verdict(runs))


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of twelve tasks; one episode is hostile, one looks at a screen."""
    folder = tmp_path_factory.mktemp("page")
    plain = Trace(calls=(call(0, [{"role": "user", "content": "Do it"}], {"content": "Done"}),))
    good = [(episode(f"task{n}", a, True), plain) for n in range(10) for a in range(2)]
    good += [(episode("hostile", 0, False, HOSTILE), hostile_trace())]
    good += [(episode("screen", 0, True), screen_trace())]
    poor = [(episode(f"task{n}", a, n < 4, "wrong"), plain) for n in range(10) for a in range(2)]
    runs = [write_run(folder / "a", good), write_run(folder / "b", poor, harness="codex")]
    return build(runs, folder / "report")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Any]:
    try:
        path = find()
    except UsageError as error:
        pytest.skip(str(error))
    async with playwright.async_playwright() as driver:
        started = await driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        await started.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(browser: Any, page_file: Path) -> AsyncIterator[Any]:
    """The page, opened once: plotly.js takes a second to read, and each test leaves the page usable."""
    page = await open_offline(browser, page_file)
    yield page
    await page.close()


@pytest_asyncio.fixture(loop_scope="module")
async def page(opened: Any) -> AsyncIterator[Any]:
    """The page as it is when it opens. Nothing may be printed to the console or asked of a network."""
    await opened.set_viewport_size({"width": 1280, "height": 900})
    await opened.evaluate(RESET)
    yield opened
    assert not opened.said


async def open_offline(browser: Any, file: Path) -> Any:
    context = await browser.new_context(offline=True)
    page = await context.new_page()
    page.set_default_timeout(LIMIT)
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda r: r.url.startswith("file:") or page.said.append(r.url))
    await page.goto(file.as_uri())
    return page


async def test_first_screen_answers(page: Any) -> None:
    assert "react" in await page.inner_text(".verdict")
    table = page.locator("#cross-harness-table")
    assert await table.locator("tbody tr").count() == 2
    assert await table.locator("th[scope=row]").count() == 2
    row = table.locator("tbody tr").first
    assert await row.locator("td", has=page.locator(".range")).all_inner_texts() == [
        *["100.0% 72–100"] * 2,
        *["91.7% 65–99", "83.3% 55–95"],
    ]


async def test_measures_link_to_an_example_episode(page: Any) -> None:
    link = page.locator("#measures-table td a").first
    name = await link.inner_text()
    await link.click()
    await page.locator("dialog[open]").get_by_role("heading", name=name).wait_for()


async def test_names_are_given_once(page: Any) -> None:
    names = await page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(names) == len(set(names))


async def test_charts_are_drawn_and_redrawn_in_the_other_theme(page: Any) -> None:
    places = page.locator("[data-figure]")
    assert await places.count() == 5
    for n in range(5):
        await places.nth(n).scroll_into_view_if_needed()
        await places.nth(n).locator("svg.main-svg").first.wait_for()
    dot = places.nth(0).locator(".points path").first
    before = await dot.evaluate("e => getComputedStyle(e).fill")
    await page.click("#theme")
    await page.wait_for_function(
        "([place, before]) => getComputedStyle(place.querySelector('.points path')).fill !== before",
        arg=[await places.nth(0).element_handle(), before],
    )
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"


async def test_theme_follows_the_system_until_the_reader_chooses(page: Any) -> None:
    theme = "document.documentElement.dataset.theme"
    await page.emulate_media(color_scheme="dark")
    await page.wait_for_function(f"() => {theme} === 'dark'")
    await page.click("#theme")
    assert await page.evaluate(theme) == "light"
    await page.emulate_media(color_scheme="light")
    await page.emulate_media(color_scheme="dark")
    assert await page.evaluate(theme) == "light"
    await page.emulate_media(color_scheme="light")


async def test_tables_sort_by_click_and_by_keyboard(page: Any) -> None:
    table = page.locator("#cross-harness-table")
    heading = table.locator("th", has_text="harness").first
    column = "(t) => [...t.tBodies[0].rows].map((row) => row.cells[1].textContent)"
    await heading.locator("button").click()
    assert await heading.get_attribute("aria-sort") == "ascending"
    assert await table.evaluate(column) == ["codex", "react"]
    await page.keyboard.press("Enter")
    assert await heading.get_attribute("aria-sort") == "descending"
    assert await table.evaluate(column) == ["react", "codex"]


async def test_tables_can_be_searched(page: Any) -> None:
    await page.fill("input[data-search=tasks-table]", "task7")
    assert await page.locator("#tasks-table tbody tr:not([hidden])").count() == 1


async def test_episodes_are_searched_and_filtered(page: Any) -> None:
    rows = page.locator("#list tbody tr")
    assert await page.inner_text("#count") == "42 episodes"
    await page.select_option("[name=harness]", "codex")
    await page.select_option("[name=outcome]", "failed")
    assert await rows.count() == 12
    await page.fill("[name=text]", "TASK9#1 wrong")
    assert await rows.count() == 1
    assert await page.inner_text("#count") == "1 of 42 episodes"


async def test_an_episode_opens_from_its_shard(page: Any) -> None:
    await page.locator("#list a", has_text="task3#1").first.click()
    dialog = page.locator("dialog[open]")
    await dialog.get_by_text("What happened").wait_for()
    assert "Do it" in await dialog.inner_text()
    assert await dialog.locator(".call .kind").inner_text() == "main"
    await dialog.get_by_role("button", name="Next").click()
    await dialog.get_by_role("heading", name="task4#0").wait_for()
    await page.keyboard.press("Escape")
    await page.wait_for_function("() => !document.querySelector('dialog').open && !location.hash")


async def test_film_marks_the_point(page: Any) -> None:
    await page.locator("#list a", has_text="screen#0").click()
    shot = page.locator(".film li").nth(1)
    mark = shot.locator(".mark")
    assert await mark.get_attribute("style") == "left:25%;top:50%"
    image = shot.locator("img")
    await image.scroll_into_view_if_needed()
    await page.wait_for_function(
        "(img) => img.complete && img.naturalWidth === 64", arg=await image.element_handle()
    )
    box, at = await shot.locator(".screen").bounding_box(), await mark.bounding_box()
    assert abs(at["x"] + at["width"] / 2 - box["x"] - box["width"] / 4) < 3
    assert abs(at["y"] + at["height"] / 2 - box["y"] - box["height"] / 2) < 3
    assert "thought 1" in await shot.inner_text()
    assert "http://shop.localhost/0" in await shot.inner_text()


async def test_hostile_text_is_inert(page: Any) -> None:
    await page.locator("#list a", has_text="hostile#0").click()
    await page.locator("dialog[open]").get_by_text("What happened").wait_for()
    await page.evaluate(
        "document.querySelectorAll('dialog details').forEach((d) => { d.open = true })"
    )
    await page.locator("dialog pre").first.wait_for()
    assert await page.evaluate("window.hacked") is None
    assert await page.locator("dialog img, #list img").count() == 0
    assert "</script><img src=x" in await page.inner_text("dialog")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
async def test_nothing_overflows_and_contrast_holds(page: Any, theme: str, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 900})
    await page.evaluate("(theme) => setTheme(theme)", theme)
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await page.evaluate(over) == 0
    assert await page.evaluate(CONTRAST) == []
    await page.locator("#list a", has_text="screen#0").click()
    await page.locator(".film").wait_for()
    assert (
        await page.evaluate(
            "(d => d.scrollWidth - d.clientWidth)(document.querySelector('dialog'))"
        )
        == 0
    )
    assert await page.evaluate(CONTRAST) == []


async def test_missing_shard_says_what_to_do(page: Any) -> None:
    await page.evaluate("load(7).catch((error) => { window.told = error.message })")
    await page.wait_for_function("() => window.told")
    assert "keep the folder beside this page" in await page.evaluate("window.told")
    page.said.clear()  # Chromium told of it as well


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page of 1,000 episodes. They need not survive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    messages: list[dict[str, object]] = [{"role": "user", "content": "Do it " * 400}]
    trace = Trace(calls=(call(0, messages, {"content": "Done" * 500}),))
    made = [(episode(f"task{n:03}", a, n % 3 > 0), trace) for n in range(250) for a in range(4)]
    return build([write_run(tmp_path / "run", made, attempts=4)], tmp_path / "report")


@pytest.mark.slow
async def test_a_thousand_episodes_stay_usable(browser: Any, large: Path) -> None:
    assert len(list((large.parent / "episodes").iterdir())) > 1
    page = await open_offline(browser, large)
    rows = page.locator("#list tbody tr")
    assert await rows.count() == 100
    await page.click("#more")
    assert await rows.count() == 200
    await page.fill("[name=text]", "task249#3")
    assert await rows.count() == 1
    await rows.locator("a").click()
    await page.locator("dialog[open]").get_by_text("What happened").wait_for()
    assert await page.evaluate("shards.size") == 1
    assert not page.said
    await page.close()
