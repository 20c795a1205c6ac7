"""Actions at a point of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec

from environments.browser_use.action import Action, ActionError, Fraction, at
from environments.browser_use.viewport import HEIGHT, WIDTH, pixels

if TYPE_CHECKING:
    from environments.browser_use.tabs import Tabs

__all__ = ["Click", "Drag", "Hover", "Scroll", "Select", "Upload"]

DRAG_STEPS = 12
"""Moves between press and release: many pages believe in no drag of one jump."""


class Click(Action, frozen=True, kw_only=True):
    """Click at a point of the page. x and y are fractions of the viewport, from 0 (left, top) to 1
    (right, bottom); count 2 is a double click. The reply shows the page afterwards."""

    tool: ClassVar[str] = "browser_click"
    x: Fraction
    y: Fraction
    button: Literal["left", "right", "middle"] = "left"
    count: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1

    def describe(self) -> str:
        kind = {1: "click", 2: "double click", 3: "triple click"}[self.count]
        prefix = "" if self.button == "left" else f"{self.button} "
        return f"{prefix}{kind} at {at(self.x, self.y)}"

    async def perform(self, tabs: Tabs) -> None:
        x, y = pixels(self.x, self.y)
        options = await tabs.options_at(x, y)
        await tabs.active.mouse.click(x, y, button=self.button, click_count=self.count)
        if options:
            tabs.tell(f"a list to choose from by browser_select: {' | '.join(options)}")


class Hover(Action, frozen=True, kw_only=True):
    """Move the pointer to a point of the page, without a click."""

    tool: ClassVar[str] = "browser_hover"
    x: Fraction
    y: Fraction

    def describe(self) -> str:
        return f"hover at {at(self.x, self.y)}"

    async def perform(self, tabs: Tabs) -> None:
        await tabs.active.mouse.move(*pixels(self.x, self.y), steps=2)


class Drag(Action, frozen=True, kw_only=True):
    """Press the left button at one point, move to another, and release it there."""

    tool: ClassVar[str] = "browser_drag"
    from_x: Fraction
    from_y: Fraction
    to_x: Fraction
    to_y: Fraction

    def describe(self) -> str:
        return f"drag from {at(self.from_x, self.from_y)} to {at(self.to_x, self.to_y)}"

    async def perform(self, tabs: Tabs) -> None:
        mouse = tabs.active.mouse
        await mouse.move(*pixels(self.from_x, self.from_y))
        await mouse.down()
        try:
            await mouse.move(*pixels(self.to_x, self.to_y), steps=DRAG_STEPS)
        finally:
            await mouse.up()


class Scroll(Action, frozen=True, kw_only=True):
    """Scroll the page, or what is at the point x, y. Deltas are fractions of the viewport's width and
    height; positive is right and down: delta_y 0.8 is most of a screen down."""

    tool: ClassVar[str] = "browser_scroll"
    delta_x: Annotated[float, msgspec.Meta(ge=-100, le=100)] = 0.0
    delta_y: Annotated[float, msgspec.Meta(ge=-100, le=100)] = 0.0
    x: Fraction | None = None
    y: Fraction | None = None

    def __post_init__(self) -> None:
        _both_or_none(self.x, self.y)

    def describe(self) -> str:
        where = "" if self.x is None or self.y is None else f" at {at(self.x, self.y)}"
        return f"scroll by {at(self.delta_x, self.delta_y)}{where}"

    async def perform(self, tabs: Tabs) -> None:
        mouse = tabs.active.mouse
        x, y = (0.5, 0.5) if self.x is None or self.y is None else (self.x, self.y)
        await mouse.move(*pixels(x, y))
        await mouse.wheel(self.delta_x * WIDTH, self.delta_y * HEIGHT)


class Select(Action, frozen=True, kw_only=True):
    """Choose an option of the drop-down list at a point, by its visible text. Open lists of options are
    not in the screenshot; a click on one tells its options."""

    tool: ClassVar[str] = "browser_select"
    x: Fraction
    y: Fraction
    option: str

    def describe(self) -> str:
        return f"select {self.option!r} at {at(self.x, self.y)}"

    async def perform(self, tabs: Tabs) -> None:
        await tabs.select(*pixels(self.x, self.y), self.option)


class Upload(Action, frozen=True, kw_only=True):
    """Give a file of the task to the upload field or button at a point. file is its path in your
    workspace."""

    tool: ClassVar[str] = "browser_upload"
    x: Fraction
    y: Fraction
    file: str

    def describe(self) -> str:
        return f"upload {self.file!r} at {at(self.x, self.y)}"

    async def perform(self, tabs: Tabs) -> None:
        if self.file not in tabs.files:
            known = ", ".join(tabs.files) or "none"
            raise ActionError(f"the task has no file {self.file!r}; its files: {known}")
        await tabs.upload(*pixels(self.x, self.y), self.file)


def _both_or_none(x: float | None, y: float | None) -> None:
    if (x is None) != (y is None):
        raise ValueError("give both x and y, or neither")
