"""ReAct as its paper has it (arxiv.org/abs/2210.03629): actions and observations are text.

For models, and servers, without tool calling; and as a second harness of another form, to see what a
policy that learnt in one can do in the other. The prompt format, all of it:

    system      PROMPT with one line for each tool: name, description, JSON schema of its arguments
    user        the task's prompt
    assistant   what the model wrote, as it is
    user        `Observation: ` and the tool's reply as JSON, or what is wrong with the action

The first `Action: NAME {JSON}` line of a reply is carried out. A reply without one is the final answer.
"""

from __future__ import annotations

import re

import msgspec

from harness_wrappers._chat import MAX_TURNS, client, converse
from rollout.errors import HarnessError
from rollout.harness import Finish, Harness, Job
from rollout.jsontext import read_json
from rollout.sandbox import Sandbox
from rollout.types import JsonObject

__all__ = ["PROMPT", "ReactText"]

PROMPT = """\
Do the user's task. These tools are there, each with a JSON schema of its arguments:

{tools}

To use one, write a line `Action: NAME {{JSON}}` and stop. You are then told what it returned, in a line \
that begins with `Observation:`. When the task is done, write your final answer without an action."""

ACTION = re.compile(r"^Action: *([\w.-]+) *(\{.*\})\s*$", re.MULTILINE)


class ReactText(Harness):
    """The loop. In process; tools are called natively, which the model never sees."""

    dialect = "chat"
    surfaces = ("native",)
    converses = True

    async def run(self, job: Job, sandbox: Sandbox) -> Finish:
        async def turn(message: JsonObject) -> list[JsonObject]:
            said = message.get("content") or ""
            return [{"role": "assistant", "content": said}, *await _observed(job, said)]

        async with client(job.endpoint) as model:
            return await converse(job, model, PROMPT.format(tools=_listed(job)), turn)

    def has_shell(self, surface: str) -> bool:
        return False

    def fingerprint(self) -> JsonObject:
        return {"prompt": PROMPT, "max_turns": MAX_TURNS}


async def _observed(job: Job, said: str) -> list[JsonObject]:
    """The observation after a reply, where the reply has an action."""
    if (action := ACTION.search(said)) is None:
        return []
    observation = await _observation(job, action[1], action[2])
    return [{"role": "user", "content": f"Observation: {observation}"}]


def _listed(job: Job) -> str:
    return "\n".join(
        f"{tool.name}: {tool.description} {msgspec.json.encode(tool.input_schema).decode()}"
        for tool in job.tools
    )


async def _observation(job: Job, name: str, written: str) -> str:
    if job.call_tool is None:
        raise HarnessError("react_text needs Job.call_tool")
    try:
        arguments = read_json(written)
    except ValueError as error:
        return f"Error: the arguments are not valid JSON: {error}"
    reply = await job.call_tool(name, arguments)
    return msgspec.json.encode(reply.body).decode()
