"""`--model reference`: plays a task's reference solution. No LLM, no GPU, no key.

It acts as a model would: it sees the conversation and the functions on offer, and answers with one tool
call or with the final message. What it has done so far it reads off its own earlier calls. Where no
function is a task's tool it uses the shell: it reads the SKILL.md that covers the tool, and sends the
command written there. A reply that the harness cut short is not asked for again (calls have effects);
the final message then says so. To the harness `molmoweb`, which offers no functions, it writes actions.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import Any, Self

from rollout.errors import UsageError
from rollout.gateway.upstream import (
    ModelReply,
    ModelRequest,
    Upstream,
    chat_completion,
    estimated_tokens,
)
from rollout.gateway.upstreams import _catalog, _molmoweb
from rollout.gateway.upstreams._conversation import Conversation, Unreadable
from rollout.gateway.upstreams._script import Targets, next_action
from rollout.types import JsonObject, Solution, Step, Task, Usage

__all__ = ["Reference"]

NOTHING = Solution(name="nothing", answer="This task has no reference solution.")


class Reference(Upstream):
    """The scripted policy."""

    model = "reference"
    label = "reference policy (no LLM)"
    scripted = True

    @classmethod
    def from_spec(cls, argument: str, base_url: str) -> Self:
        if argument:
            raise UsageError(f"--model {cls.model} takes no argument, not {argument!r}")
        return cls()

    def unfit(self, task: Task) -> str:
        return "" if task.reference else "has no reference solution, which --model reference plays"

    def solution(self, task: Task, seed: int) -> Solution:
        """What is played in the attempt that has this seed."""
        return task.reference or NOTHING

    async def complete(self, request: ModelRequest) -> ModelReply:
        solution = self.solution(request.task, request.seed)
        action = await _act(solution, request)
        if isinstance(action, str):
            message: JsonObject = {"role": "assistant", "content": action}
        else:
            message = {"role": "assistant", "content": None, "tool_calls": [action]}
        finish = "stop" if isinstance(action, str) else "tool_calls"
        usage = Usage(
            prompt=estimated_tokens([request.body.get("messages"), request.body.get("tools")]),
            completion=estimated_tokens(message),
        )
        return ModelReply(
            body=chat_completion(self.model, _digest(request), message, finish, usage),
            usage=usage,
            finish=finish,
            model=self.model,
        )

    async def count_tokens(self, body: JsonObject) -> int:
        return estimated_tokens([body.get("messages"), body.get("tools")])


async def _act(solution: Solution, request: ModelRequest) -> str | JsonObject:
    """The next tool call, or the final message."""
    if prompt := _molmoweb.recognised(request.body):
        return await _molmoweb.act(solution, prompt, request.locate)
    names = {tool.name for tool in request.task.tools} | {step.call for step in solution.steps}
    conversation = Conversation(request.body, sorted(names))
    history = conversation.history()
    step = next_action(solution, history)
    if isinstance(step, Step):
        arguments = await Targets(request.locate).resolve(step.arguments)
        step = Step(call=step.call, arguments=arguments)
    if isinstance(step, str):
        cut = sorted({name for name, reply in history if isinstance(reply.body, Unreadable)})
        return f"{step}\n\n(Could not be read whole: {', '.join(cut)}.)" if cut else step
    if conversation.writes_actions:
        return f"Action: {step.call} {json.dumps(step.arguments, ensure_ascii=False)}"
    if function := conversation.function_for(step.call):
        return _tool_call(function.name, function.tool_arguments(step.arguments), request)
    return _act_by_catalog(step, conversation, request) or _act_by_shell(
        step, conversation, request
    )


def _act_by_catalog(
    step: Step, conversation: Conversation, request: ModelRequest
) -> JsonObject | None:
    """None where there is no catalogue, it lacks the tool, or a skill that names the tool is unread."""
    if name := conversation.cataloged(step.call):
        return _tool_call(_catalog.CALL, {"id": name, "args": step.arguments}, request)
    if not conversation.has_catalog or conversation.has_searched(step.call):
        return None
    read = conversation.shell_outputs()
    if any(_reading(path) not in read for path in conversation.skills_naming(step.call)):
        return None
    if conversation.documented(step.call, step.arguments):
        return None
    return _tool_call(_catalog.SEARCH, {"query": step.call}, request)


def _act_by_shell(
    step: Step, conversation: Conversation, request: ModelRequest
) -> str | JsonObject:
    shell = conversation.shell
    if shell is None:
        return f"I can't call {step.call}: neither it nor a shell is offered to me."
    if command := conversation.documented(step.call, step.arguments):
        return _tool_call(shell.name, shell.shell_arguments(command), request)
    commands = conversation.shell_outputs()
    for path in conversation.skill_paths(step.call):
        if (read := _reading(path)) not in commands:
            return _tool_call(shell.name, shell.shell_arguments(read), request)
    loader, skill = conversation.skill_loader, conversation.unloaded_skill(step.call)
    if loader and skill:
        return _tool_call(loader.name, {"skill": skill}, request)
    return f"I can't call {step.call}: I was shown no SKILL.md that documents it."


def _reading(path: str) -> str:
    """The command that shows a SKILL.md."""
    return f"cat {path if path.startswith('~/') else shlex.quote(path)}"


def _tool_call(name: str, arguments: Any, request: ModelRequest) -> JsonObject:
    return {
        "id": f"call_{_digest(request)}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
    }


def _digest(request: ModelRequest) -> str:
    """Different for every turn of every attempt, and the same each time it is played."""
    turn = len(request.body.get("messages") or ())
    text = f"{request.task.id}\0{request.seed}\0{turn}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]
