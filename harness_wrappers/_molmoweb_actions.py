"""MolmoWeb's actions as calls of a browser's tools.

The names and fields are those that the released model writes (github.com/allenai/molmoweb,
agent/actions.py). What its own executor does not heed is heeded here: the button of a click, for one.
Some things that a browser can do have no action there; BEYOND names the ones that were added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from rollout.types import JsonObject

__all__ = ["BEYOND", "KEYS", "MESSAGE_LIMIT", "Infeasible", "Say", "Scale", "Use", "meant"]

Scale = Literal["percent", "unit"]
"""Of coordinates and distances: 0 to 100 (the released weights), or fractions of the viewport."""

KEYS = (
    *("Enter", "Escape", "Backspace", "Tab", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"),
    *("ControlOrMeta+a", "ControlOrMeta+c", "ControlOrMeta+v", "F5"),
)
"""All that the released model's `keyboard_press` knows."""

BEYOND = (
    "select_option",
    "upload_file",
    "browser_nav go_forward and close_tab",
    "press_enter and clear_before_typing of keyboard_type",
)

MESSAGE_LIMIT = 1000
"""Characters of a message to the user."""

NOOP_SECONDS = 5
BUTTONS = ("left", "right", "middle")
WIDTH, HEIGHT = 1280, 720

NAVIGATION: dict[str, tuple[str, JsonObject]] = {
    "go_back": ("browser_back", {}),
    "go_forward": ("browser_forward", {}),
    "new_tab": ("browser_tab", {"action": "new"}),
    "tab_focus": ("browser_tab", {"action": "focus"}),
    "close_tab": ("browser_tab", {"action": "close"}),
}


@dataclass(frozen=True)
class Use:
    """An action on the page: a tool, and what it is given."""

    tool: str
    arguments: JsonObject


@dataclass(frozen=True)
class Say:
    """A message to the user."""

    text: str


@dataclass(frozen=True)
class Infeasible:
    """The model gives the task up."""

    reason: str


def meant(action: JsonObject, scale: Scale, any_key: bool = False) -> Use | Say | Infeasible:
    """What an action asks for. Raises ValueError with one line for one that asks for nothing.

    `any_key` lets keys pass that are not among KEYS.
    """
    fields = _Fields(action, scale)
    name = action.get("name")
    match name:
        case "send_msg_to_user":
            return Say(fields.text("msg", "")[:MESSAGE_LIMIT])
        case "report_infeasible":
            return Infeasible(fields.text("infeasibility_reason", "no reason given"))
        case "goto":
            return Use("browser_goto", {"url": fields.text("url")})
        case "browser_nav":
            return _navigation(fields)
        case "noop":
            return Use("browser_wait", {"seconds": NOOP_SECONDS})
        case "keypress" | "keyboard_press":
            return Use("browser_press", {"key": _key(fields.text("key"), any_key)})
        case "type" | "keyboard_type":
            return _typing(fields, {}, whole=False)
        case "gemini_type_text_at":
            return _typing(fields, fields.point(tenths=True), whole=True)
    return _pointing(str(name), fields)


def _pointing(name: str, fields: _Fields) -> Use:
    match name:
        case "click" | "mouse_click" | "dblclick":
            double = name == "dblclick" or fields.text("click_type", "single") == "double"
            button = fields.choice("button", BUTTONS)
            return Use("browser_click", {**fields.point(), "button": button, "count": 1 + double})
        case "hover_at":
            return Use("browser_hover", fields.point())
        case "drag_and_drop" | "mouse_drag_and_drop":
            return Use("browser_drag", {**fields.point("from_"), **fields.point("to_")})
        case "scroll":
            return Use("browser_scroll", fields.distance())
        case "scroll_at":
            return Use("browser_scroll", {**fields.distance(), **fields.point()})
        case "select_option":
            return Use("browser_select", {**fields.point(), "option": fields.text("option")})
        case "upload_file":
            return Use("browser_upload", {**fields.point(), "file": fields.text("file")})
    raise ValueError(f"there is no action {name!r}")


def _navigation(fields: _Fields) -> Use:
    kind = fields.choice("nav_type", tuple(NAVIGATION))
    tool, arguments = NAVIGATION[kind]
    index = int(fields.number("index", -1.0))
    if kind in ("tab_focus", "close_tab") and index >= 0:
        arguments = {**arguments, "index": index}
    return Use(tool, arguments)


def _typing(fields: _Fields, where: JsonObject, *, whole: bool) -> Use:
    """`whole`: the field is emptied first and Enter pressed after, unless the action says otherwise."""
    typed: JsonObject = {"text": fields.text("text", ""), **where}
    typed["clear"] = fields.flag("clear_before_typing", whole)
    typed["enter"] = fields.flag("press_enter", whole)
    return Use("browser_type", typed)


def _key(name: str, any_key: bool) -> str:
    known = {key.casefold(): key for key in KEYS}
    key = known.get(name.casefold(), name if any_key else "")
    if not key:
        raise ValueError(f"keyboard_press: there is no key {name!r}; known: {', '.join(KEYS)}")
    return key.replace("ControlOrMeta", "ctrl")


class _Fields:
    """Reads an action's fields; what is missing or of no use is a ValueError."""

    def __init__(self, action: JsonObject, scale: Scale) -> None:
        self._action = action
        self._whole = 100.0 if scale == "percent" else 1.0
        self._tenths = 1000.0 if scale == "percent" else 1.0

    def point(self, prefix: str = "", *, tenths: bool = False) -> JsonObject:
        """Coordinates as fractions of the viewport, off its very edge as the released client has it."""
        whole = self._tenths if tenths else self._whole
        sizes = {"x": WIDTH, "y": HEIGHT}
        found = {axis: self.number(f"{prefix}{axis}") / whole for axis in sizes}
        return {
            f"{prefix}{axis}": min(max(found[axis], 1 / size), 1 - 2 / size)
            for axis, size in sizes.items()
        }

    def distance(self) -> JsonObject:
        """How far to scroll, as fractions of the viewport."""
        return {name: self.number(name, 0.0) / self._whole for name in ("delta_x", "delta_y")}

    def number(self, key: str, default: float | None = None) -> float:
        value = self._action.get(key, default)
        try:
            number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise self._wrong(key, "a number")
        return number

    def text(self, key: str, default: str | None = None) -> str:
        value = self._action.get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, "text")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._action.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def choice(self, key: str, known: tuple[str, ...]) -> str:
        """One of the known values; the first where the field is missing."""
        value = self.text(key, known[0])
        if value not in known:
            raise self._wrong(key, f"one of {', '.join(known)}")
        return value

    def _wrong(self, key: str, wanted: str) -> ValueError:
        given = repr(self._action[key]) if key in self._action else "missing"
        return ValueError(f"{self._action.get('name')}: {key} must be {wanted}, it is {given}")
