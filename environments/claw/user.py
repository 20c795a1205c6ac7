"""The simulated user of claw-eval's multi-turn tasks (src/claw_eval/runner/user_agent.py).

A second model plays a persona: it is shown the conversation and answers the agent, at most `max_rounds`
times, or says [DONE]. Prompts (read from the checkout), temperature and the prefix of its messages are
claw-eval's. One thing is not: there it also reads what the agent says between tool calls; here it reads
the agent's answers.
"""

from __future__ import annotations

import ast
import asyncio
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rollout.errors import EnvironmentFault, ModelError, boundary
from rollout.gateway.retry import Retry
from rollout.gateway.upstream import ModelReply, ModelRequest, Transient, Upstream
from rollout.types import JsonObject, Record, Task

__all__ = ["PREFIX", "SimulatedUser", "UserSpec", "Wording", "wording"]

PREFIX = "[user_agent]\n"
"""Marks the simulated user's messages: graders split a conversation by it."""

TEMPERATURE = 0.7

SOURCE = Path("src", "claw_eval", "runner", "user_agent.py")
"""Where a checkout of claw-eval keeps its user's prompts."""


class Wording(NamedTuple):
    """How the user's model is asked: templates over `{persona}` and `{transcript}`."""

    system: str
    request: str


OURS = Wording(
    system=(
        "You play a person who asked an assistant for help. Who you are, and what you know:\n"
        "{persona}\n\n"
        "Stay that person. Write one to three everyday sentences in the language of the "
        "conversation. Answer the assistant's questions from what you know; when you do not know, "
        "say so. Write [DONE] and nothing else once you have what you asked for."
    ),
    request="The conversation so far:\n{transcript}\n\nYour next message, or [DONE]:",
)
"""For tasks that come without a checkout of claw-eval."""


@cache
def wording(checkout: str) -> Wording:
    """claw-eval's own prompts, read from a checkout's source; ours where there is none.

    Raises EnvironmentFault when the source holds no such prompts: other ones would not be comparable.
    """
    if not checkout:
        return OURS
    path = Path(checkout) / SOURCE
    with boundary(EnvironmentFault, f"reading the user's prompts in {path}"):
        assigned = {
            target.id: node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        return Wording(_template(assigned["_SYSTEM_PROMPT"]), _template(assigned["user_msg"]))


def _template(node: ast.expr) -> str:
    """A string, or an f-string with its names left open."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        return f"{{{node.value.id}}}"
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_template, node.values))
    raise ValueError("not a plain text")


class UserSpec(Record, frozen=True, kw_only=True):
    """A task's simulated user."""

    persona: str
    max_rounds: int = 3
    suffix: str = ""
    """What the agent is told of talking to this user; it follows the task's prompt."""


class SimulatedUser:
    """The user of one attempt."""

    def __init__(
        self, spec: UserSpec, upstream: Upstream, task: Task, seed: int, checkout: str = ""
    ) -> None:
        self._spec = spec
        self._wording = wording(checkout)
        self._upstream = upstream
        self._task = task
        self._seed = seed
        self._said = [f"[用户]: {task.prompt}"]
        self.rounds = 0
        self.done = False

    async def reply(self, answer: str) -> str | None:
        """What the user says to the agent's answer; None when satisfied, or out of rounds.

        Raises ModelError when the user's model gives no reply.
        """
        if answer:
            self._said.append(f"[助手]: {answer}")
        if self.rounds >= self._spec.max_rounds:
            return None
        text = await self._ask()
        if not text or "[DONE]" in text:
            self.done = True
            return None
        self.rounds += 1
        self._said.append(f"[用户]: {text}")
        return PREFIX + text

    def record(self) -> JsonObject:
        """How the conversation went, under claw-eval's names."""
        return {
            "rounds_used": self.rounds,
            "max_rounds": self._spec.max_rounds,
            "done_reached": self.done,
        }

    async def _ask(self) -> str:
        transcript = "\n".join(self._said)
        messages = [
            {"role": "system", "content": self._wording.system.format(persona=self._spec.persona)},
            {"role": "user", "content": self._wording.request.format(transcript=transcript)},
        ]
        body = {
            "model": self._upstream.model,
            "messages": messages,
            "temperature": TEMPERATURE,
            "seed": (self._seed + self.rounds) % 2**31,
        }
        request = ModelRequest(dialect="chat", body=body, task=self._task, seed=self._seed)
        reply = await _complete(self._upstream, request)
        return str(reply.body["choices"][0]["message"].get("content") or "").strip()


async def _complete(upstream: Upstream, request: ModelRequest) -> ModelReply:
    """Asked again while the failure is transient."""
    retry, tries, began = Retry(), 0, time.monotonic()
    while True:
        try:
            return await upstream.complete(request)
        except Transient as error:
            tries += 1
            pause = retry.delay(tries, time.monotonic() - began, error)
            if pause is None:
                raise ModelError(f"the simulated user's model gave no reply: {error}") from error
            await asyncio.sleep(pause)
        except ModelError as error:
            raise ModelError(f"the simulated user's model refused: {error}") from error
