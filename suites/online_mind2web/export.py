"""A run in the form that Online-Mind2Web's evaluator reads: `result.json`, version 2 (its src/run.py).

    <task id>/result.json
    <task id>/trajectory/0000.png ...

The evaluator leaves out the last step, which it takes for the answer: so the answer is written as one.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from environments.browser_use.task import BrowserTask
from rollout.protocol import Evidence
from rollout.types import JsonObject
from suites.browser import numbered

__all__ = ["write"]


def write(folder: Path, task: BrowserTask, told: Evidence) -> None:
    """Write one attempt below `folder`."""
    place = folder / task.id.replace("/", "_")  # ids come from a file
    pictures = place / "trajectory"
    pictures.mkdir(parents=True)
    steps: list[JsonObject] = []
    names: dict[str, str] = {}
    for step, image in zip(told.steps, numbered(told), strict=True):
        name = ""
        if image is not None:
            name = names.setdefault(image.digest, f"{len(names):04d}.png")
            (pictures / name).write_bytes(image.data)
        status = f"failed: {step.error}" if step.error else "success"
        steps.append(_step(len(steps), name, step.url, step.action, step.thought, status))
    last = steps[-1] if steps else {"screenshot": "", "url": told.start}
    answer = f"answer: {told.answer}" if told.answer else "no answer"
    steps.append(_step(len(steps), last["screenshot"], last["url"], answer, "", "success"))
    result = {
        "schema_version": "online-mind2web-v2",
        "task_id": task.id,
        "task": told.task,
        "reference_length": task.reference_length,
        "agent_final_answer": told.answer,
        "action_history": steps,
    }
    text = msgspec.json.format(msgspec.json.encode(result), indent=2)
    (place / "result.json").write_bytes(text + b"\n")


def _step(
    number: int, screenshot: str, url: str, action: str, thought: str, status: str
) -> JsonObject:
    return {
        **{"step": number, "screenshot": screenshot, "url": url},
        **{"action": action, "action_status": status, "thought": thought},
    }
