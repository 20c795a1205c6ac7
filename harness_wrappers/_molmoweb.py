"""MolmoWeb's protocol: what the model is shown each step, and how its reply is read.

The headings, their order and the way in which steps are written are those that the released weights
were trained on (github.com/allenai/molmoweb, agent/multimodal_agent.py); they hold no instructions.
Other models know nothing of them: GUIDE, in our own words, tells those what to write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness_wrappers._molmoweb_actions import Scale
from rollout.types import Image, JsonObject, ToolReply

__all__ = ["GUIDE", "THINKS", "Page", "PastStep", "guide", "prompt", "read", "unreadable"]

THINKS = "molmo_web_think"
"""The style token of replies with a thought; with any other, steps are shown by their actions alone."""

TITLE_LIMIT = 100
CUT = "... (truncated)"

SCALES: dict[Scale, str] = {
    "percent": "percent of the viewport, from 0 to 100",
    "unit": "fractions of the viewport, from 0 to 1",
}

GUIDE = """\
# HOW TO ACT
You work in a web browser and see its page as a picture. Reply with one JSON object and nothing else:
{{"thought": "why this is the next thing to do", "action": {{"name": "...", ...}}}}

x and y count from the top left corner. They, and delta_x and delta_y, are {scale}.
The actions and their fields:
click x y button(left|right|middle)      dblclick x y      hover_at x y
mouse_drag_and_drop from_x from_y to_x to_y
scroll delta_x delta_y                   scroll_at x y delta_x delta_y      (positive: right, down)
keyboard_type text                       types into what has the focus
gemini_type_text_at x y text press_enter clear_before_typing{typing}
keyboard_press key                       Enter, Escape, Tab, ArrowDown, ControlOrMeta+a ...
select_option x y option                 a choice of a drop-down list, by its text
upload_file x y file                     goto url
browser_nav nav_type index               go_back, go_forward, new_tab, tab_focus or close_tab
noop noop_reason                         waits for the page
send_msg_to_user msg                     "[ANSWER] ..." when the task is done, with what was asked for
report_infeasible infeasibility_reason   when the task can't be done
"""

JSON_OBJECT = re.compile(r"\{.*\}", re.S)


@dataclass(frozen=True)
class Page:
    """The page as the model is shown it."""

    screenshot: Image
    url: str = ""
    title: str = ""
    tab: int = 0

    def after(self, reply: ToolReply) -> Page:
        """The page that an action's reply shows; what it does not tell is as before."""
        body = reply.body if isinstance(reply.body, dict) else {}
        return Page(
            screenshot=reply.images[-1] if reply.images else self.screenshot,
            url=str(body.get("url", self.url)),
            title=str(body.get("title", self.title)),
            tab=body.get("tab", self.tab),
        )


@dataclass(frozen=True)
class PastStep:
    """A step that was taken."""

    number: int
    thought: str
    action: JsonObject
    error: str = ""


def prompt(goal: str, past: Sequence[PastStep], page: Page, style: str) -> str:
    """The text of a step's user turn. Style "" is for models that were not trained on any."""
    steps = "".join(_shown(step, thinks=style in (THINKS, "")) for step in past)
    here = f"Page {page.tab}: {_cut(page.title)} | {_cut(page.url)}"
    text = (
        f"\n# GOAL\n{goal}\n\n# PREVIOUS STEPS\n{steps}\n"
        f"# CURRENTLY ACTIVE PAGE\n{here}\n\n# NEXT STEP\n"
    )
    return f"{style}: {text}" if style else text


def guide(scale: Scale) -> str:
    """What is said to a model that was not trained on the protocol."""
    typing = "" if scale == "unit" else "  (here x and y are per mille, from 0 to 1000)"
    return GUIDE.format(scale=SCALES[scale], typing=typing)


def read(text: str, *, whole: bool) -> tuple[str, JsonObject]:
    """Thought and action of a reply. Raises ValueError for one that holds none.

    `whole`: all of it must be JSON. Otherwise words before and after, and a fence, are passed over.
    """
    if not whole and (found := JSON_OBJECT.search(text.rpartition("</think>")[2])):
        text = found[0]
    reply = json.loads(text)
    if not isinstance(reply, dict):
        raise ValueError(f"not a JSON object but {type(reply).__name__}")
    if "action" not in reply and "name" not in reply:
        raise ValueError("neither an action nor a name of one")
    thought, action = reply.get("thought", ""), reply.get("action", reply)
    if not isinstance(action, dict):
        raise ValueError(f"the action is no object but {type(action).__name__}")
    return (thought if isinstance(thought, str) else json.dumps(thought)), action


def unreadable(reply: str, why: str) -> tuple[str, JsonObject]:
    """Thought and action that stand in the history for a reply that could not be used."""
    action = {"name": "report_infeasible", "infeasibility_reason": f"The reply was: {reply}"}
    return f"My reply could not be used: {why}", action


def _shown(step: PastStep, *, thinks: bool) -> str:
    """Actions are written as Python writes a dictionary: the weights were trained on that."""
    lines = [f"## Step {step.number}", f"ACTION: {step.action}"]
    if thinks:
        lines.insert(1, f"THOUGHT: {step.thought}")
    if step.error:
        lines.append(f"ERROR: {step.error}")
    return "\n".join(lines) + "\n"


def _cut(text: str) -> str:
    return text if len(text) <= TITLE_LIMIT else text[: TITLE_LIMIT - len(CUT)] + CUT
