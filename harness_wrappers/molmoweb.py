"""MolmoWeb's loop for models that look at a browser (github.com/allenai/molmoweb), in process.

Each step is one user turn and no conversation: goal, the last steps as text, the page's title and URL,
one screenshot. The model answers with a thought and an action, as JSON, which becomes a call of a browser
tool. The loop ends with the model's `[ANSWER]` (or `[EXIT]`), when it reports the task infeasible, or
when the steps are used up.

Options, as presets set them:

    scale      percent: coordinates from 0 to 100, as the released weights write them; unit: from 0 to 1
    style      the token before the prompt: molmo_web_think, molmo_web_base (no thoughts), or none
    guided     says which actions there are, takes any key, and finds the JSON among other words: for
               models that were not trained on the protocol
    history    how many of the last steps the model is shown
    stop       answer: at [ANSWER] or [EXIT], as the released client; exit: at [EXIT] alone, as its
               benchmark runner
    errors     shows what went wrong with an action; the released client does not
    malformed  step: a reply that can't be used costs a step, as in the released runner; stop: ends
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import openai

from harness_wrappers._chat import client, complete
from harness_wrappers._molmoweb import (
    GUIDE,
    THINKS,
    Page,
    PastStep,
    guide,
    prompt,
    read,
    unreadable,
)
from harness_wrappers._molmoweb_actions import BEYOND, Infeasible, Say, Use, meant
from rollout.errors import HarnessError
from rollout.gateway.dialects.history import text_part
from rollout.harness import Finish, Harness, Job
from rollout.pictures import data_url
from rollout.sandbox import Sandbox
from rollout.types import JsonObject, Task

__all__ = ["MAX_STEPS", "MolmoWeb"]

MAX_STEPS = 30
"""Model calls, where the task sets no limit."""

ANSWER, EXIT, INFEASIBLE = "[ANSWER]", "[EXIT]", "[INFEASIBLE]"

LOOK = "browser_screenshot"

RELEASED: JsonObject = {
    "scale": "percent",
    "style": THINKS,
    "guided": False,
    "history": 10,
    "stop": "answer",
    "errors": False,
    "malformed": "step",
}
UNIT: JsonObject = {**RELEASED, "scale": "unit", "style": "", "guided": True}


class MolmoWeb(Harness):
    """The loop. Needs neither a program nor a sandbox."""

    dialect = "chat"
    surfaces = ("native",)
    presets: ClassVar[Mapping[str, JsonObject]] = {
        "default": RELEASED,
        "action-only": {**RELEASED, "style": "molmo_web_base"},
        "runner": {**RELEASED, "stop": "exit"},
        "training": {**RELEASED, "history": 3},
        "unit": UNIT,
        "unit-errors": {**UNIT, "errors": True},
        "unit-strict": {**UNIT, "malformed": "stop"},
    }

    async def run(self, job: Job, sandbox: Sandbox) -> Finish:
        if missing := _without_browser({tool.name for tool in job.tools}):
            raise HarnessError(missing)
        async with client(job.endpoint) as model:
            return await _Loop(job, self.options, model).run()

    def unfit(self, task: Task) -> str:
        return _without_browser({tool.name for tool in task.tools})

    def fingerprint(self) -> JsonObject:
        return {"guide": GUIDE, "max_steps": MAX_STEPS, "beyond": list(BEYOND)}


def _without_browser(tools: set[str]) -> str:
    if LOOK in tools:
        return ""
    return "molmoweb needs a task with browser_* tools; --harness react takes any"


@dataclass
class _Loop:
    """One episode's."""

    job: Job
    options: JsonObject
    model: openai.AsyncOpenAI
    past: list[PastStep] = field(default_factory=list)
    malformed: list[int] = field(default_factory=list)
    said: str = ""
    """The last message to the user."""

    async def run(self) -> Finish:
        page = await self._look()
        limit = self.job.max_turns or MAX_STEPS
        for number in range(1, limit + 1):
            try:
                reply = await self._ask(page)
            except openai.BadRequestError as error:
                return self._finish(failed=f"the model call was refused: {error}")
            outcome = await self._step(number, reply, page)
            if isinstance(outcome, Finish):
                return outcome
            page = outcome
        return self._finish(answer=self.said, gave_up=f"no answer after {limit} steps")

    async def _look(self) -> Page:
        """The page before the first step."""
        assert self.job.call_tool is not None
        reply = await self.job.call_tool(LOOK, {})
        if not reply.images:
            raise HarnessError(f"{LOOK} showed no picture (status {reply.status}): {reply.body}")
        return Page(reply.images[-1]).after(reply)

    async def _ask(self, page: Page) -> str:
        options, past = self.options, self.past
        shown = past[-options["history"] :] if options["history"] else []
        text = prompt(self.job.prompt, shown, page, options["style"])
        if options["guided"]:
            text = guide(options["scale"]) + text
        picture = {"type": "image_url", "image_url": {"url": data_url(page.screenshot)}}
        turn = {"role": "user", "content": [text_part(text), picture]}
        body: JsonObject = {"model": self.job.endpoint.model, "messages": [turn]}
        message = (await complete(self.model, body))["message"]
        # A server's reasoning parser may take all of the reply for thoughts.
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        return str(message.get("content") or reasoning or "")

    async def _step(self, number: int, reply: str, page: Page) -> Page | Finish:
        """Do what a reply asks for: the page after it, or the end."""
        guided, scale = self.options["guided"], self.options["scale"]
        try:
            thought, action = read(reply, whole=not guided)
        except (ValueError, RecursionError) as error:
            return self._malformed(PastStep(number, *unreadable(reply, str(error))), error) or page
        step = PastStep(number, thought, action)
        try:
            wanted = meant(action, scale, any_key=guided)
        except ValueError as error:
            return self._malformed(step, error) or page
        if isinstance(wanted, Infeasible):
            return self._finish(answer=f"{INFEASIBLE} {wanted.reason}")
        if isinstance(wanted, Say):
            self._keep(replace(step, action={**action, "msg": wanted.text}))
            return self._say(wanted.text) or page
        return await self._use(step, wanted, page)

    async def _use(self, step: PastStep, wanted: Use, page: Page) -> Page:
        assert self.job.call_tool is not None
        reply = await self.job.call_tool(wanted.tool, wanted.arguments)
        body = reply.body if isinstance(reply.body, dict) else {}
        self._keep(step, str(body.get("error") or ""))
        return page.after(reply)

    def _keep(self, step: PastStep, error: str = "") -> None:
        """Add a step to the history."""
        self.past.append(replace(step, error=error if self.options["errors"] else ""))

    def _say(self, text: str) -> Finish | None:
        """The end, where the message is one."""
        if text.startswith(EXIT):
            return self._finish(answer=self.said or text.removeprefix(EXIT).strip())
        self.said = text.removeprefix(ANSWER).strip()
        if text.startswith(ANSWER) and self.options["stop"] == "answer":
            return self._finish(answer=self.said)
        return None

    def _malformed(self, step: PastStep, why: Exception) -> Finish | None:
        """A reply that asks for nothing which can be done: the end, or a step without effect."""
        self.malformed.append(step.number)
        if self.options["malformed"] == "stop":
            return self._finish(answer=self.said, gave_up=f"the reply could not be used: {why}")
        self._keep(step, str(why))
        return None

    def _finish(self, answer: str = "", gave_up: str = "", failed: str = "") -> Finish:
        steps = ", ".join(map(str, self.malformed))
        log = f"malformed replies: {len(self.malformed)}, in steps {steps}" if steps else ""
        return Finish(answer=answer, gave_up=gave_up, failed=failed, log=log)
