"""Scripted solutions through MolmoWeb's text protocol (`harness_wrappers.molmoweb`).

That harness holds no conversation: each call shows the goal, the last steps as text, and the page as it
is now. So the policy writes into each thought where it stands, and reads it there in the next call; the
page is the reply to that step. Replies to earlier steps are not to be seen any more: references to them
find nothing. Where no thoughts are shown, nothing is tried again and nobody goes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollout.gateway.upstreams._script import Locate, Place, Targets, step_at
from rollout.types import JsonObject, Solution, Step, ToolReply

__all__ = ["Prompt", "act", "recognised"]

PROMPT = re.compile(
    r"# PREVIOUS STEPS\n(?P<past>.*)\n# CURRENTLY ACTIVE PAGE\n"
    r"Page (?P<tab>-?\d+): (?P<title>.*) \| (?P<url>\S*(?: \(truncated\))?)\n\n# NEXT STEP\s*\Z",
    re.S,
)
STEP = re.compile(r"^## Step (?P<number>\d+)$", re.M)
STANDING = re.compile(
    r"^THOUGHT: Step (\d+) of \d+(?:, try (\d+))?(, waiting)?(?:, went back from ([\d: ]+))?: ",
    re.M,
)
ERROR = re.compile(r"^ERROR: (?P<text>.+)$", re.M)
WITHOUT_THOUGHTS = re.compile(r"^(?!molmo_web_think)\w+: ")
UNIT = "fractions of the viewport"
"""In the guide of prompts whose coordinates are not percent."""

WAITING = "its target is not there"

KEYS = {f"ctrl+{key}": f"ControlOrMeta+{key}" for key in "acv"}


@dataclass(frozen=True)
class Prompt:
    """What a call of the harness shows."""

    steps: int
    """How many steps were taken."""
    last: str
    """The last of them, as it is written there."""
    page: JsonObject
    """The page now, with what went wrong in the last step where that is shown."""
    thinks: bool
    unit: bool
    """Whether coordinates are fractions; else percent."""


def recognised(body: JsonObject) -> Prompt | None:
    """The prompt of a chat request, None where another harness asks."""
    messages: list[JsonObject] = body.get("messages") or []
    if len(messages) != 1 or body.get("tools") or not isinstance(messages[0].get("content"), list):
        return None
    texts = (part["text"] for part in messages[0]["content"] if part.get("type") == "text")
    text = next(texts, "")
    if (found := PROMPT.search(text)) is None:
        return None
    past = found["past"]
    steps = [(int(one["number"]), one.start()) for one in STEP.finditer(past)]
    number, begin = steps[-1] if steps else (0, len(past))
    last = past[begin:]
    page: JsonObject = {name: found[name] for name in ("url", "title")}
    page["tab"] = int(found["tab"])
    if error := ERROR.search(last):
        page["error"] = error["text"]
    return Prompt(
        steps=number,
        last=last,
        page=page,
        thinks=WITHOUT_THOUGHTS.match(text) is None,
        unit=UNIT in text[: found.start()],
    )


async def act(solution: Solution, prompt: Prompt, locate: Locate | None) -> str:
    """The next reply: a thought and an action, or the action alone where thoughts are not shown."""
    place, replies = _standing(solution, prompt)
    due = step_at(solution, place, replies)
    targets = Targets(locate)
    if isinstance(due, str):
        said = "[EXIT]" if "[ANSWER]" in prompt.last else f"[ANSWER] {due}"
        action, what = {"name": "send_msg_to_user", "msg": said}, "the answer"
    else:
        arguments = await targets.resolve(due.arguments)
        action = _action(Step(call=due.call, arguments=arguments), unit=prompt.unit)
        what = due.call
    if targets.absent and place.tries < solution.steps[place.position].retry:
        place = replace(place, tries=place.tries + 1)
        action, what = {"name": "noop", "noop_reason": "loading"}, WAITING
    thought = _thought(place, len(solution.steps) + 1, what)
    reply = {"thought": thought, "action": action} if prompt.thinks else action
    return json.dumps(reply, ensure_ascii=False)


def _standing(solution: Solution, prompt: Prompt) -> tuple[Place, dict[int, ToolReply]]:
    """Where the solution stands, and the reply to its last step."""
    if not prompt.thinks:
        return Place(position=prompt.steps), {prompt.steps: ToolReply(body=prompt.page)}
    if not (found := STANDING.search(prompt.last)):
        return Place(), {}
    step, tries, waits, back = found.groups()
    pairs = (pair.split(":") for pair in (back or "").split())
    rounds = {int(number) - 1: int(count) for number, count in pairs}
    place, reply = Place(int(step) - 1, int(tries or 1) - 1, rounds), ToolReply(body=prompt.page)
    if waits or place.position >= len(solution.steps):
        return place, {place.position: reply}
    return place.after(solution.steps, reply), {place.position + 1: reply}


def _thought(place: Place, steps: int, what: str) -> str:
    """Where the solution stands, for STANDING to read."""
    tries = f", try {place.tries + 1}" if place.tries else ""
    waits = ", waiting" if what == WAITING else ""
    pairs = " ".join(f"{at + 1}:{count}" for at, count in place.rounds.items())
    back = f", went back from {pairs}" if pairs else ""
    return f"Step {place.position + 1} of {steps}{tries}{waits}{back}: {what}"


def _action(step: Step, *, unit: bool) -> JsonObject:
    """A tool call as the action that the harness turns into it."""
    given: Mapping[str, Any] = step.arguments
    where = _scaled(given, 1.0 if unit else 100.0)
    match step.call:
        case "browser_click":
            if given.get("count", 1) > 1:
                return {"name": "dblclick", **where}
            return {"name": "click", **where, "button": given.get("button", "left")}
        case "browser_hover":
            return {"name": "hover_at", **where}
        case "browser_drag":
            return {"name": "mouse_drag_and_drop", **where}
        case "browser_scroll":
            return {"name": "scroll_at" if "x" in given else "scroll", **where}
        case "browser_type":
            return _typing(given, _scaled(given, 1.0 if unit else 1000.0))
        case "browser_press":
            key = str(given.get("key", ""))
            return {"name": "keyboard_press", "key": KEYS.get(key.lower(), key)}
        case "browser_goto":
            return {"name": "goto", "url": given.get("url", "")}
        case "browser_select":
            return {"name": "select_option", **where, "option": given.get("option", "")}
        case "browser_upload":
            return {"name": "upload_file", **where, "file": given.get("file", "")}
    return _navigation(step)


def _typing(given: Mapping[str, Any], where: JsonObject) -> JsonObject:
    typed = {
        "text": given.get("text", ""),
        "press_enter": bool(given.get("enter", False)),
        "clear_before_typing": bool(given.get("clear", False)),
    }
    if where:
        return {"name": "gemini_type_text_at", **where, **typed}
    return {"name": "keyboard_type", **{key: value for key, value in typed.items() if value}}


def _navigation(step: Step) -> JsonObject:
    index = step.arguments.get("index", -1)
    tabs = {"new": "new_tab", "focus": "tab_focus", "close": "close_tab"}
    match step.call:
        case "browser_reload":
            return {"name": "keyboard_press", "key": "F5"}
        case "browser_back":
            return {"name": "browser_nav", "nav_type": "go_back", "index": -1}
        case "browser_forward":
            return {"name": "browser_nav", "nav_type": "go_forward", "index": -1}
        case "browser_tab":
            kind = tabs.get(step.arguments.get("action", ""), "")
            return {"name": "browser_nav", "nav_type": kind, "index": index}
        case "browser_wait" | "browser_screenshot":
            return {"name": "noop", "noop_reason": "loading"}
    return {"name": step.call, **step.arguments}


def _scaled(given: Mapping[str, Any], whole: float) -> JsonObject:
    """Coordinates and distances; what is no number goes on as it is."""
    names = ("x", "y", "from_x", "from_y", "to_x", "to_y", "delta_x", "delta_y")
    return {
        name: round(given[name] * whole, 6) if isinstance(given[name], int | float) else given[name]
        for name in names
        if name in given
    }
