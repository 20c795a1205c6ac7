"""The base of all actions: arguments as the model is shown them, words for people, and the doing."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from rollout.types import JsonObject, ToolSpec

if TYPE_CHECKING:
    from environments.browser_use.tabs import Tabs

__all__ = ["Action", "ActionError", "Fraction", "at", "spec"]

Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A coordinate: 0 is the left or upper edge of the viewport, 1 the right or lower one."""


class ActionError(Exception):
    """The action could not be done; the message tells the agent why."""


class Action(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing to do. The docstring of a subclass is what the model reads of it."""

    tool: ClassVar[str]

    @abstractmethod
    def describe(self) -> str:
        """What is done, as people write it."""

    @abstractmethod
    async def perform(self, tabs: Tabs) -> None:
        """Do it in the active tab. Raises ActionError, or whatever Playwright raises."""


def at(x: float, y: float) -> str:
    """A point in words."""
    return f"({x:.3f}, {y:.3f})"


def spec(action: type[Action]) -> ToolSpec:
    """The tool that an action is called by."""
    _, definitions = msgspec.json.schema_components([action])
    schema: JsonObject = dict(definitions[action.__name__])
    schema.pop("title", None)
    schema.pop("description", None)
    text = re.sub(r"\s+", " ", action.__doc__ or "").strip()
    return ToolSpec(name=action.tool, description=text, input_schema=schema, group="browser")
