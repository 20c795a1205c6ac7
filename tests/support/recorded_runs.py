"""Runs written straight into a store, without running anything: hostile, with pictures, or large."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from rollout.manifest import Code, Manifest
from rollout.store import EpisodeStore
from rollout.types import (
    Call,
    Episode,
    Grade,
    Image,
    Outcome,
    Timing,
    ToolCall,
    Trace,
    Usage,
)

HOSTILE = (
    "</script><img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
    "<!--<script>\u2028\u2029&lt;b&gt;{{app}}"
)
"""What would run, or break the page, where it is not escaped."""


def png(shade: int, width: int = 64, height: int = 36) -> Image:
    """A plain grey picture."""
    rows = (b"\0" + bytes([shade]) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return Image(data=b"\x89PNG\r\n\x1a\n" + body)


def call(
    index: int,
    messages: list[dict[str, object]],
    said: dict[str, object],
    kind: str = "main",
    **more: object,
) -> Call:
    """A chat call that was sent `messages` and answered with `said`."""
    reply = {"choices": [{"message": {"role": "assistant", **said}, "finish_reason": "stop"}]}
    fields = {
        "index": index,
        "dialect": "chat",
        "kind": kind,
        "request": msgspec.json.encode({"model": "m", "messages": messages}),
        "reply": msgspec.json.encode(reply),
        "started": 10.0 + index,
        "seconds": 0.5,
        "usage": Usage(prompt=100, completion=10),
        "finish": "stop",
    }
    return Call(**{**fields, **more})  # type: ignore[arg-type]


def asked(name: str, arguments: str) -> dict[str, object]:
    """One tool call of a chat message."""
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


def hostile_trace() -> Trace:
    """An agent that writes HTML wherever it can."""
    messages: list[dict[str, object]] = [
        {"role": "system", "content": HOSTILE},
        {"role": "user", "content": f"Do it. {HOSTILE}"},
    ]
    first = {
        "content": HOSTILE,
        "reasoning_content": HOSTILE,
        "tool_calls": [asked(f"tool{HOSTILE}", "{bad json")],
    }
    return Trace(
        calls=(
            call(0, messages, first),
            call(1, messages, {"content": "none"}, status=500, reply=HOSTILE.encode()),
        ),
        tool_calls=(
            ToolCall(
                index=0,
                name=HOSTILE,
                arguments={HOSTILE: HOSTILE},
                status=200,
                reply={"text": HOSTILE},
                surface="native",
                started=10.7,
            ),
        ),
        answer=HOSTILE,
        world={"audit": {HOSTILE: {"sent": [HOSTILE], "calls": [1]}}},
        log=HOSTILE,
    )


def screen_trace() -> Trace:
    """An agent that looks at a screen: go to a page, click, drag."""
    before, after = png(200), png(90)
    go = {"url": "http://shop.localhost/"}
    click = {"x": 0.25, "y": 0.5}
    drag = {"from_x": 0.1, "from_y": 0.2, "to_x": 0.8, "to_y": 0.9}
    steps = (
        (go, "browser_goto", before),
        (click, "browser_click", after),
        (drag, "browser_drag", after),
    )
    return Trace(
        calls=tuple(
            call(n, [{"role": "user", "content": "Buy it"}], {"content": f"thought {n}"})
            for n in range(3)
        ),
        tool_calls=tuple(
            ToolCall(
                index=n,
                name=name,
                arguments=arguments,
                status=200,
                reply={"url": f"http://shop.localhost/{n}", "title": "Shop"},
                surface="native",
                started=10.6 + n,
                images=(image.digest,),
            )
            for n, (arguments, name, image) in enumerate(steps)
        ),
        answer="Bought.",
        world={"site": {"shop": {"orders": [1]}}},
        images={image.digest: image for image in (before, after)},
    )


def episode(task: str, attempt: int, passed: bool, note: str = "") -> Episode:
    """A graded attempt."""
    return Episode(
        id=f"{task}#{attempt}",
        task_id=task,
        attempt=attempt,
        outcome=Outcome.PASSED if passed else Outcome.FAILED,
        reason=note,
        grade=Grade(
            score=float(passed), passed=passed, parts={"all": float(passed)}, notes=(note,)
        ),
        calls=2,
        tool_calls=1,
        usage=Usage(prompt=1000, completion=50),
        timing=Timing(total=3.0, model=1.0, tools=0.5),
    )


def write_run(
    folder: Path,
    episodes: Iterable[tuple[Episode, Trace]],
    *,
    harness: str = "react",
    attempts: int = 2,
) -> Path:
    """A run's folder with these episodes."""
    stored = list(episodes)

    async def fill(store: EpisodeStore) -> None:
        for one, trace in stored:
            await store.append(one, trace)

    with EpisodeStore.create(folder) as store:
        asyncio.run(fill(store))
    Manifest(
        suite={"name": "made-up"},
        tasks={one.task_id: "0" for one, _ in stored},
        harness={"name": harness, "preset": "default"},
        tools="native",
        model={"model": "m"},
        seed=0,
        attempts=attempts,
        code=Code(version="0"),
        created="2026-01-01T00:00:00+00:00",
    ).write(folder)
    return folder
