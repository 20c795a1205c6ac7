"""A judge that answers as a function says, and records what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from rollout.judge import Judge
from rollout.protocol import Evidence, ScreenStep
from rollout.types import Image

__all__ = ["Asked", "ScriptedJudge", "evidence", "pictures", "said"]

Asked = list[dict[str, Any]]


class ScriptedJudge(Judge):
    """`answer` is given the messages, as one text, and how often they were asked before."""

    model = "scripted"

    def __init__(self, answer: Callable[[str, int], str]) -> None:
        self._answer = answer
        self.asked: list[Asked] = []

    async def reply(self, messages: Asked, repeat: int = 0) -> str:
        self.asked.append(messages)
        await asyncio.sleep(0)
        return self._answer(said(messages), repeat)


def said(messages: Asked) -> str:
    """All text of the messages."""
    texts: list[str] = []
    for message in messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        texts += [part["text"] for part in parts if "text" in part]
    return "\n".join(texts)


def pictures(messages: Asked) -> list[str]:
    """The addresses of all pictures in the messages."""
    parts = [part for m in messages if isinstance(m["content"], list) for part in m["content"]]
    return [part["image_url"]["url"] for part in parts if "image_url" in part]


def evidence(steps: int = 3, **more: Any) -> Evidence:
    """Steps 1, 2, ... each with a screenshot whose bytes are `screen N`."""
    done = tuple(
        ScreenStep(
            action=f"click {n}",
            thought=f"because {n}",
            screenshot=Image(data=f"screen {n}".encode()),
            error="no such button" if n == 2 else "",
        )
        for n in range(1, steps + 1)
    )
    fields = {"task": "Buy the {cheapest} pen", "steps": done, "answer": "Bought."}
    return Evidence(**(fields | more))
