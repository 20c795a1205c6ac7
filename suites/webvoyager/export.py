"""A run in the form that WebVoyager's evaluator reads (its evaluation/auto_eval.py).

    task<id>/interact_messages.json
    task<id>/screenshot1.png ...

Of the messages it reads the second, between "Now given a task:" and "Please interact with", and the last:
an answer between brackets, or none.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from environments.browser_use.task import BrowserTask
from rollout.protocol import Evidence
from rollout.types import JsonObject
from suites.browser import numbered

__all__ = ["write"]

BRACKETS = str.maketrans("[]", "()")
"""An answer ends there at its first bracket."""


def write(folder: Path, task: BrowserTask, told: Evidence) -> None:
    """Write one attempt below `folder`."""
    place = folder / f"task{task.id.replace('/', '_')}"
    place.mkdir(parents=True)
    shown = [image for image in numbered(told) if image is not None]
    for number, image in enumerate(shown, start=1):
        (place / f"screenshot{number}.png").write_bytes(image.data)
    text = msgspec.json.format(msgspec.json.encode(_messages(told)), indent=1)
    (place / "interact_messages.json").write_bytes(text + b"\n")


def _messages(told: Evidence) -> list[JsonObject]:
    task = " ".join(told.task.split())
    asked = f"Now given a task: {task}  Please interact with {told.start} and get the answer."
    messages: list[JsonObject] = [
        {"role": "system", "content": "A web agent's work, step by step."},
        {"role": "user", "content": asked},
    ]
    for step in told.steps:
        said = f"Thought: {step.thought}\nAction: {step.action}"
        messages.append({"role": "assistant", "content": said})
        messages.append({"role": "user", "content": step.error or step.url})
    if answer := told.answer.translate(BRACKETS).strip():
        messages.append({"role": "assistant", "content": f"Action: ANSWER; [{answer}]"})
    return messages
