"""A browser without a browser: a page with a field and a button, and a new picture each time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from rollout.environment import Environment, Surface, World
from rollout.sandbox import Sandbox
from rollout.types import (
    Grade,
    Image,
    JsonObject,
    Solution,
    Step,
    Task,
    ToolReply,
    ToolSpec,
    Trace,
)

__all__ = ["TOOLS", "Screen", "ScreenWorld", "at", "png", "screen_task"]

NUMBER = {"type": "number"}
TEXT = {"type": "string"}

ARGUMENTS: dict[str, JsonObject] = {
    "browser_click": {"x": NUMBER, "y": NUMBER, "button": TEXT, "count": {"type": "integer"}},
    "browser_hover": {"x": NUMBER, "y": NUMBER},
    "browser_drag": {"from_x": NUMBER, "from_y": NUMBER, "to_x": NUMBER, "to_y": NUMBER},
    "browser_scroll": {"delta_x": NUMBER, "delta_y": NUMBER, "x": NUMBER, "y": NUMBER},
    "browser_type": {
        **{"text": TEXT, "x": NUMBER, "y": NUMBER},
        **{"clear": {"type": "boolean"}, "enter": {"type": "boolean"}},
    },
    "browser_press": {"key": TEXT},
    "browser_goto": {"url": TEXT},
    "browser_back": {},
    "browser_forward": {},
    "browser_reload": {},
    "browser_tab": {"action": TEXT, "index": {"type": "integer"}},
    "browser_select": {"x": NUMBER, "y": NUMBER, "option": TEXT},
    "browser_upload": {"x": NUMBER, "y": NUMBER, "file": TEXT},
    "browser_wait": {"seconds": NUMBER},
    "browser_screenshot": {},
}

TOOLS = tuple(
    ToolSpec(
        name=name,
        description=f"{name.removeprefix('browser_')} in the browser",
        group="browser",
        input_schema={"type": "object", "properties": properties},
    )
    for name, properties in ARGUMENTS.items()
)

TARGETS = {"text=Name": {"x": 0.25, "y": 0.125}, "text=Send": {"x": 0.5, "y": 0.75}}


def at(target: str) -> JsonObject:
    """Arguments `x` and `y` of a step."""
    return {name: f"{{{{at:{target}|{name}}}}}" for name in ("x", "y")}


def screen_task(**fields: Any) -> Task:
    """Type a name into the field, and send it."""
    steps = (
        Step(call="browser_click", arguments=at("text=Name")),
        Step(call="browser_type", arguments={"text": "Zoë"}),
        Step(call="browser_click", arguments=at("text=Send")),
    )
    return Task(
        **{
            "id": "screen",
            "prompt": "Send the name Zoë.",
            "tools": TOOLS,
            "reference": Solution(name="reference", steps=steps, answer="Sent: Zoë"),
            **fields,
        }
    )


class ScreenWorld(World):
    """Clicks on its targets count, whatever else is done is only noted."""

    def __init__(self, task: Task) -> None:
        self.surface = Surface(prompt=task.prompt, tools=task.tools)
        self.calls: list[tuple[str, Any]] = []
        self.text = ""
        self.sent: list[str] = []
        self.targets = dict(TARGETS)

    async def call(self, name: str, arguments: Any) -> ToolReply:
        if name not in ARGUMENTS:
            return await super().call(name, arguments)
        self.calls.append((name, arguments))
        bad = [
            k for k, v in arguments.items() if k in ("x", "y") and not isinstance(v, int | float)
        ]
        if bad:
            return ToolReply(status=422, body={"error": f"{bad[0]}: must be a number"})
        if name == "browser_type":
            self.text += arguments["text"]
        if name == "browser_click" and self._hits(arguments, "text=Send"):
            self.sent.append(self.text)
        return ToolReply(body=self._page(), images=(Image(data=png(len(self.calls))),))

    async def locate(self, target: str) -> JsonObject:
        return self.targets[target]

    async def snapshot(self, sandbox: Sandbox) -> JsonObject:
        return {"sent": self.sent, "calls": [list(call) for call in self.calls]}

    def _hits(self, arguments: JsonObject, target: str) -> bool:
        place = self.targets.get(target)
        return place is not None and all(abs(arguments[k] - place[k]) < 1e-6 for k in place)

    def _page(self) -> JsonObject:
        url, title = "http://form.localhost/", f"Form, sent {len(self.sent)}"
        tab = {"index": 0, "title": title, "url": url}
        return {"url": url, "title": title, "tab": 0, "tabs": [tab], "events": []}


class Screen(Environment):
    """Passes when the name was sent once, and the answer says so."""

    def __init__(self) -> None:
        self.worlds: list[ScreenWorld] = []

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        self.worlds.append(ScreenWorld(task))
        yield self.worlds[-1]

    async def grade(self, task: Task, trace: Trace, judge: Any = None) -> Grade:
        passed = trace.world["sent"] == ["Zoë"] and trace.answer == "Sent: Zoë"
        return Grade(score=float(passed), passed=passed)


def png(number: int, width: int = 64, height: int = 36) -> bytes:
    """A picture of one grey, another one for each number."""
    rows = (b"\0" + bytes([number % 256]) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
