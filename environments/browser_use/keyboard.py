"""Actions of the keyboard, and the many names of its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from environments.browser_use.action import Action, ActionError, Fraction, at
from environments.browser_use.viewport import pixels

if TYPE_CHECKING:
    from environments.browser_use.tabs import Tabs

__all__ = ["Press", "Type", "chord"]

TYPED = 500
"""Characters that are typed key by key, as pages with suggestions want it; the rest arrives at once."""

MODIFIERS = {
    **dict.fromkeys(("ctrl", "control", "controlormeta", "cmd", "command", "meta"), "Control"),
    **dict.fromkeys(("super", "win", "windows"), "Meta"),
    **dict.fromkeys(("alt", "option", "opt"), "Alt"),
    "shift": "Shift",
}
"""A Mac's cmd means Control here: the browser runs on Linux."""

KEYS = {
    **dict.fromkeys(("enter", "return"), "Enter"),
    **dict.fromkeys(("esc", "escape"), "Escape"),
    **dict.fromkeys(("del", "delete"), "Delete"),
    **dict.fromkeys(("backspace", "back"), "Backspace"),
    **dict.fromkeys(("ins", "insert"), "Insert"),
    **dict.fromkeys(("pageup", "pgup", "prior"), "PageUp"),
    **dict.fromkeys(("pagedown", "pgdn", "pgdown", "next"), "PageDown"),
    **dict.fromkeys(("space", "spacebar"), "Space"),
    **{key: f"Arrow{key.title()}" for key in ("up", "down", "left", "right")},
    **{f"arrow{key}": f"Arrow{key.title()}" for key in ("up", "down", "left", "right")},
    **{f"f{n}": f"F{n}" for n in range(1, 13)},
    "tab": "Tab",
    "home": "Home",
    "end": "End",
    "plus": "+",
    "minus": "-",
    "capslock": "CapsLock",
}

SHORTCUTS = {
    "F5": "reload",
    "Control+r": "reload",
    "Alt+ArrowLeft": "back",
    "Alt+ArrowRight": "forward",
    "Control+t": "new_tab",
    "Control+w": "close_tab",
}
"""What a browser's own window does on these; over CDP only the page would get them."""


class Type(Action, frozen=True, kw_only=True):
    """Type text into what has the focus; with x and y click there first. clear empties the field
    before, enter presses Enter after. A line break in the text presses Enter, a tab goes to the next
    field."""

    tool: ClassVar[str] = "browser_type"
    text: str
    x: Fraction | None = None
    y: Fraction | None = None
    clear: bool = False
    enter: bool = False

    def __post_init__(self) -> None:
        if (self.x is None) != (self.y is None):
            raise ValueError("give both x and y, or neither")

    def describe(self) -> str:
        where = "" if self.x is None or self.y is None else f" at {at(self.x, self.y)}"
        return f"type {self.text!r}{where}" + (" and press Enter" if self.enter else "")

    async def perform(self, tabs: Tabs) -> None:
        page = tabs.active
        if self.x is not None and self.y is not None:
            await page.mouse.click(*pixels(self.x, self.y))
        if self.clear:
            await page.keyboard.press("Control+a")
            await page.keyboard.press("Delete")
        await page.keyboard.type(self.text[:TYPED])
        if rest := self.text[TYPED:]:
            await page.keyboard.insert_text(rest)
        if self.enter:
            await page.keyboard.press("Enter")


class Press(Action, frozen=True, kw_only=True):
    """Press a key or a combination of keys: Enter, Escape, ArrowDown, ctrl+a, shift+Tab."""

    tool: ClassVar[str] = "browser_press"
    key: str

    def describe(self) -> str:
        return f"press {self.key}"

    async def perform(self, tabs: Tabs) -> None:
        keys = chord(self.key)
        if keys in SHORTCUTS:
            await getattr(tabs, SHORTCUTS[keys])()
        else:
            await tabs.active.keyboard.press(keys)


def chord(text: str) -> str:
    """A combination of keys as Playwright writes it. Raises ActionError for what is no key."""
    named = text.replace("++", "+plus")
    parts = [text] if text in (" ", "+") else [part.strip() for part in named.split("+")]
    modifiers = [MODIFIERS.get(_bare(part), "") for part in parts[:-1]]
    last = _key(parts[-1])
    if not last or "" in modifiers:
        raise ActionError(f"no key {text!r}; examples: Enter, ArrowDown, ctrl+a, shift+Tab")
    return "+".join(
        [*modifiers, last.lower() if "Control" in modifiers and len(last) == 1 else last]
    )


def _key(name: str) -> str:
    if len(name) == 1:
        return "Space" if name == " " else name
    bare = _bare(name)
    return KEYS.get(bare) or MODIFIERS.get(bare, "")


def _bare(name: str) -> str:
    return name.strip().casefold().replace("_", "").replace("-", "").replace(" ", "")
