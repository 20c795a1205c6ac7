"""What in-process loops share: the gateway's client, one model call, and a whole conversation."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import openai

from rollout.harness import Endpoint, Finish, Job
from rollout.types import JsonObject

__all__ = ["MAX_TURNS", "Turn", "certificates", "client", "complete", "converse"]

MAX_TURNS = 200
"""Model calls at most, where the task sets no limit."""

Turn: TypeAlias = Callable[[JsonObject], Awaitable[list[JsonObject]]]
"""Takes a message of the model, and returns what it adds to the conversation: the message itself, then
the results of the actions that it asks for. The message alone, without results, is an answer."""


def client(endpoint: Endpoint) -> openai.AsyncOpenAI:
    """A client for one episode. The gateway retries, and decides how long a call may take."""
    http = openai.DefaultAsyncHttpxClient(verify=certificates(), trust_env=False)
    return openai.AsyncOpenAI(
        base_url=endpoint.model_url,
        api_key=endpoint.key,
        max_retries=0,
        timeout=None,
        http_client=http,
    )


async def complete(client: openai.AsyncOpenAI, body: JsonObject) -> JsonObject:
    """One model call; the reply's first choice.

    Asked for as plain JSON: the client's typed models cost three times the CPU. Raises
    openai.BadRequestError for a call that was refused.
    """
    reply: Any = await client.post("/chat/completions", cast_to=object, body=body)
    choice: JsonObject = reply["choices"][0]
    return choice


async def converse(
    job: Job,
    model: openai.AsyncOpenAI,
    instructions: str,
    turn: Turn,
    functions: Sequence[JsonObject] = (),
) -> Finish:
    """Ask the model and let it act until it answers, and on while a user replies to its answers.

    `instructions` is the system message; `functions` are offered to the server as tools.
    """
    messages: list[JsonObject] = [
        {"role": "system", "content": instructions},
        {"role": "user", "content": job.prompt},
    ]
    body: JsonObject = {"model": job.endpoint.model, "messages": messages}
    if functions:
        body["tools"] = [{"type": "function", "function": item} for item in functions]
    limit = job.max_turns or MAX_TURNS
    for _ in range(limit):
        try:
            choice = await complete(model, body)
        except openai.BadRequestError as error:
            return Finish(failed=f"the model call was refused: {error}")
        message, *results = await turn(choice["message"])
        messages += [message, *results]
        if results:
            continue
        answer, reason = message.get("content") or "", choice.get("finish_reason")
        gave_up = "" if reason in ("stop", None) else f"the last reply ended by {reason}"
        text = await job.reply(answer) if job.reply and not gave_up else None
        if text is None:
            return Finish(answer=answer, gave_up=gave_up)
        messages.append({"role": "user", "content": text})
    return Finish(gave_up=f"no answer after {limit} turns")


@functools.cache
def certificates() -> ssl.SSLContext:
    """Loaded once: it takes 20 ms, which is more than an episode of five calls needs otherwise."""
    return ssl.create_default_context()
