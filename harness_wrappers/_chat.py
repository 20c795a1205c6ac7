"""The model of an in-process loop: chat completions through the gateway."""

from __future__ import annotations

import functools
import ssl
from typing import Any

import openai

from rollout.harness import Endpoint
from rollout.types import JsonObject

__all__ = ["certificates", "client", "complete"]


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


@functools.cache
def certificates() -> ssl.SSLContext:
    """Loaded once: it takes 20 ms, which is more than an episode of five calls needs otherwise."""
    return ssl.create_default_context()
