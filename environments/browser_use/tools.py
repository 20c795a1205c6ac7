"""The tools of a browser: what tasks put into `Task.tools`, and the way from a call to an action."""

from __future__ import annotations

from typing import Any

import msgspec

from environments.browser_use import keyboard, navigation, pointer
from environments.browser_use.action import Action, spec
from rollout.types import ToolSpec

__all__ = ["ACTIONS", "TOOLS", "parse"]

ACTIONS: dict[str, type[Action]] = {
    action.tool: action
    for action in (
        pointer.Click,
        pointer.Hover,
        pointer.Drag,
        pointer.Scroll,
        keyboard.Type,
        keyboard.Press,
        navigation.Goto,
        navigation.Back,
        navigation.Forward,
        navigation.Reload,
        navigation.Tab,
        pointer.Select,
        pointer.Upload,
        navigation.Wait,
        navigation.Screenshot,
    )
}

TOOLS: tuple[ToolSpec, ...] = tuple(spec(action) for action in ACTIONS.values())


def parse(name: str, arguments: Any) -> Action:
    """The action that a call asks for.

    Raises KeyError for an unknown tool, ValueError with one line for bad arguments.
    """
    return msgspec.convert(arguments, ACTIONS[name])
