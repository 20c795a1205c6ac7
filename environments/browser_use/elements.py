"""What is at a point of the page, through shadow roots and frames."""

from __future__ import annotations

from playwright.async_api import ElementHandle, FilePayload, Page
from playwright.async_api import TimeoutError as PlaywrightTimeout

from environments.browser_use.action import ActionError

__all__ = ["LISTS_STAY_CLOSED", "ORIGIN", "element_at", "options_at", "select_at", "upload_at"]

CHOOSER_LIMIT = 2000.0
"""Milliseconds for a page to ask for a file after the click."""

LISTS_STAY_CLOSED = """
addEventListener('mousedown', event => {
  const list = event.composedPath()[0]?.closest?.('select');
  if (!list || list.multiple || list.size > 1) return;
  event.preventDefault();
  list.focus();
}, true);
"""
"""Run in every page: an open drop-down list is a window of its own. No screenshot shows it, and it would
swallow the next click."""

_DEEPEST = """([x, y]) => {
  let element = document.elementFromPoint(x, y);
  while (element?.shadowRoot) {
    const inner = element.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === element) break;
    element = inner;
  }
  return element;
}"""

ORIGIN = """frame => {
  const box = frame.getBoundingClientRect(), style = getComputedStyle(frame);
  return [box.left + frame.clientLeft + parseFloat(style.paddingLeft),
          box.top + frame.clientTop + parseFloat(style.paddingTop)];
}"""
"""Where the page in a frame begins, CSS pixels of the page around it."""

_FIELD = """(element, selector) => {
  const field = element.closest(selector) ?? element.closest('label')?.control;
  return field?.matches(selector) ? field : null;
}"""

_OPTIONS = """list => list.multiple || list.size > 1 ? [] : [...list.options].map(
  option => option.label.trim() + (option.selected ? ' (chosen)' : ''))"""


async def element_at(page: Page, x: float, y: float) -> ElementHandle | None:
    """The innermost element at a point, CSS pixels of the viewport."""
    frame = page.main_frame
    while True:
        handle = (await frame.evaluate_handle(_DEEPEST, [x, y])).as_element()
        inner = await handle.content_frame() if handle else None
        if handle is None or inner is None:
            return handle
        left, top = await handle.evaluate(ORIGIN)
        frame, x, y = inner, x - left, y - top


async def options_at(page: Page, x: float, y: float) -> list[str]:
    """The options of the drop-down list at a point; none where there is no such list."""
    field = await _field_at(page, x, y, "select")
    options: list[str] = await field.evaluate(_OPTIONS) if field else []
    return options


async def select_at(page: Page, x: float, y: float, text: str) -> None:
    """Choose an option by its visible text: the very text, else the one option that has it in it."""
    field = await _field_at(page, x, y, "select")
    if field is None:
        raise ActionError("there is no list to choose from at this point")
    labels: list[str] = await field.evaluate(
        "list => [...list.options].map(option => option.label)"
    )
    await field.select_option(index=_chosen(labels, text), timeout=CHOOSER_LIMIT)


async def upload_at(page: Page, x: float, y: float, file: FilePayload) -> None:
    """Give a file to the field at a point, or to what asks for one when it is clicked."""
    if field := await _field_at(page, x, y, "input[type=file]"):
        await field.set_input_files(file)
        return
    try:
        async with page.expect_file_chooser(timeout=CHOOSER_LIMIT) as asked:
            await page.mouse.click(x, y)
        await (await asked.value).set_files(file)
    except PlaywrightTimeout:
        raise ActionError("nothing at this point asks for a file") from None


async def _field_at(page: Page, x: float, y: float, selector: str) -> ElementHandle | None:
    """The field at a point, or the one whose label is there."""
    element = await element_at(page, x, y)
    return (await element.evaluate_handle(_FIELD, selector)).as_element() if element else None


def _chosen(labels: list[str], text: str) -> int:
    plain = [" ".join(label.split()).casefold() for label in labels]
    wanted = " ".join(text.split()).casefold()
    for fits in (
        [n for n, label in enumerate(labels) if label.strip() == text.strip()],
        [n for n, label in enumerate(plain) if label == wanted],
        [n for n, label in enumerate(plain) if wanted and wanted in label],
    ):
        if len(fits) == 1 or (fits and labels[fits[0]].strip() == text.strip()):
            return fits[0]
    known = " | ".join(" ".join(label.split()) for label in labels)
    raise ActionError(f"no option, or more than one, is {text!r}; the options: {known}")
