"""Targets of scripted solutions: from words to a point on the screen.

A target is parts joined by ` >> `: one of `css=SELECTOR` or `text=TEXT`, and where needed `frame=CSS`
before it and `nth=N` (from 0) after it. TEXT is what is visible: of an element, of a button, or a
field's placeholder; the very text first, else a part of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Frame, Page

from environments.browser_use.elements import ORIGIN
from environments.browser_use.viewport import HEIGHT, WIDTH, Limits
from rollout.types import JsonObject

__all__ = ["Target", "locate", "read_target"]

POLL = 0.05

Point = tuple[float, float]

_FIND = """({css, text, nth}) => {
  const shown = element => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && element.checkVisibility({visibilityProperty: true});
  };
  const plain = words => (words ?? '').replace(/\\s+/g, ' ').trim();
  const button = element => ['submit', 'button', 'reset'].includes(element.type);
  const words = element => {
    if (element instanceof HTMLSelectElement) return plain(element.selectedOptions[0]?.label);
    if (element instanceof HTMLInputElement) {
      return plain(button(element) ? element.value : element.placeholder);
    }
    return plain(element.innerText ?? element.textContent) || plain(element.placeholder);
  };
  const all = root => [...root.querySelectorAll('*')].flatMap(
    element => element.shadowRoot ? [element, ...all(element.shadowRoot)] : [element]);
  const innermost = found => found.filter(
    element => !found.some(other => other !== element && element.contains(other)));
  let found;
  if (css) {
    found = all(document).filter(element => element.matches(css) && shown(element));
  } else {
    const holds = element => plain(element.textContent).includes(text) || 'placeholder' in element
      || 'value' in element || element.matches('br, select') || /\\n/.test(element.innerText ?? '');
    const near = all(document.body ?? document).filter(
      element => holds(element) && shown(element) && words(element).includes(text));
    const exact = near.filter(element => words(element) === text);
    found = innermost(exact.length ? exact : near);
  }
  const element = found[nth];
  if (!element) return null;
  const box = element.getClientRects()[0] ?? element.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
}"""


@dataclass(frozen=True)
class Target:
    """What is looked for, and in which frames."""

    frames: tuple[str, ...] = ()
    css: str = ""
    text: str = ""
    nth: int = 0


def read_target(target: str) -> Target:
    """The parts of a target. Raises LookupError for one that can't be read."""
    frames: list[str] = []
    found: dict[str, str] = {}
    for part in target.split(" >> "):
        kind, _, value = part.strip().partition("=")
        if kind == "frame":
            frames.append(value)
        elif kind in ("css", "text", "nth") and value and kind not in found:
            found[kind] = value
        else:
            raise LookupError(f"target {target!r}: {part!r} is not css=, text=, frame= or nth=")
    if ("css" in found) == ("text" in found) or not found.get("nth", "0").isdigit():
        raise LookupError(f"target {target!r}: give one of css= and text=, and nth= a number")
    text = " ".join(found.get("text", "").split())
    return Target(tuple(frames), found.get("css", ""), text, int(found.get("nth", "0")))


async def locate(page: Page, target: str, limits: Limits) -> JsonObject:
    """The centre of a target, fractions of the viewport, as soon as it is there.

    Raises LookupError where it is not, or lies outside the viewport.
    """
    wanted = read_target(target)
    clock = asyncio.get_running_loop().time
    deadline = clock() + limits.locate
    while True:
        point = await _within(limits.probe, _point(page, wanted))
        if point is not None and 0 <= point[0] < WIDTH and 0 <= point[1] < HEIGHT:
            return {"x": point[0] / WIDTH, "y": point[1] / HEIGHT}
        if clock() >= deadline:
            where = "outside the viewport" if point else "not on the page"
            raise LookupError(f"{target} is {where}: {page.url}")
        await asyncio.sleep(POLL)


async def _within(seconds: float, point: Awaitable[Point | None]) -> Point | None:
    try:
        return await asyncio.wait_for(point, seconds)
    except TimeoutError:
        return None


async def _point(page: Page, target: Target) -> Point | None:
    try:
        left = top = 0.0
        frame: Frame = page.main_frame
        for css in target.frames:
            element = await frame.query_selector(css)
            inner = await element.content_frame() if element else None
            if element is None or inner is None:
                return None
            x, y = await element.evaluate(ORIGIN)
            left, top, frame = left + x, top + y, inner
        wanted = {"css": target.css, "text": target.text, "nth": target.nth}
        found = await frame.evaluate(_FIND, wanted)
    except PlaywrightError as error:
        if "is not a valid selector" in error.message:
            raise LookupError(f"not a CSS selector: {target.css}") from None
        return None  # the page is on its way elsewhere
    return (left + found[0], top + found[1]) if found else None
