"""Reading a chat-completions reply: the part that harnesses get, and the tokens behind it.

Only the fields named here survive, because strict clients reject a server's own additions. What servers
write differently is brought to one form: content in parts, arguments as an object, missing or repeated
ids of calls, usage that is no count. Token ids are read as vLLM 0.32 and SGLang 0.5 answer to
`return_token_ids`.
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from rollout.gateway.dialects.fields import tokens
from rollout.gateway.upstream import ModelReply, Transient
from rollout.jsontext import read_json
from rollout.types import JsonObject, Usage

__all__ = ["read_chat_reply"]


FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})

TokenId = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Logprob(msgspec.Struct):
    logprob: float


class Logprobs(msgspec.Struct):
    content: list[Logprob] | None = None


class Message(msgspec.Struct):
    content: str | list[JsonObject] | None = None
    tool_calls: list[JsonObject] | None = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    annotations: Any = None
    audio: Any = None


class Choice(msgspec.Struct):
    message: Message
    index: int = 0
    finish_reason: str | None = None
    logprobs: msgspec.Raw = msgspec.Raw(b"null")
    token_ids: list[TokenId] | None = None
    """vLLM's name."""
    prompt_token_ids: list[TokenId] | None = None
    response_token_ids: list[TokenId] | None = None
    """SGLang's names."""


class Reply(msgspec.Struct):
    choices: Annotated[list[Choice], msgspec.Meta(min_length=1)]
    id: Any = ""
    created: Any = 0
    model: str = ""
    usage: JsonObject | None = None
    system_fingerprint: Any = None
    service_tier: Any = None
    prompt_token_ids: list[TokenId] | None = None
    """vLLM's name."""
    weight_version: Any = None
    metadata: Any = None


decode_logprobs = msgspec.json.Decoder(Logprobs | None).decode


def read_chat_reply(
    payload: bytes, headers: Mapping[str, str], *, keep_logprobs: bool = False
) -> ModelReply:
    """Read a reply; `keep_logprobs` leaves them in its body. Raises Transient for nonsense."""
    try:
        reply = read_json(payload, Reply)
    except ValueError as error:
        raise Transient(f"the reply is no chat completion: {error}") from error
    first = reply.choices[0]
    if first.finish_reason in ("abort", "error"):
        raise Transient(f"generation ended with {first.finish_reason!r}")
    prompt_ids, response_ids = _token_ids(reply)
    sampled = _logprobs(first)
    return ModelReply(
        body=_body(reply, keep_logprobs),
        usage=_usage(reply.usage or {}, prompt_ids, response_ids),
        finish=_finish(first),
        model=reply.model,
        prompt_ids=_int32(prompt_ids),
        response_ids=_int32(response_ids),
        # One that has no partner would shift all that follow it: none is better.
        logprobs=array("f", sampled).tobytes() if len(sampled) == len(response_ids) else b"",
        weights=_weights(reply, headers),
    )


def _logprobs(choice: Choice) -> list[float]:
    try:
        told = decode_logprobs(choice.logprobs)
    except msgspec.DecodeError:
        return []
    return [entry.logprob for entry in (told and told.content) or ()]


def _body(reply: Reply, keep_logprobs: bool) -> JsonObject:
    body: JsonObject = {
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.model,
        "choices": [_choice(choice, keep_logprobs) for choice in reply.choices],
    }
    optional = {
        "usage": reply.usage and _counts(reply.usage),
        "system_fingerprint": reply.system_fingerprint,
        "service_tier": reply.service_tier,
    }
    return body | {name: value for name, value in optional.items() if value is not None}


def _choice(choice: Choice, keep_logprobs: bool) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": _text(choice.message.content)}
    thoughts = (choice.message.reasoning_content, choice.message.reasoning)
    optional = {
        "reasoning_content": next((t for t in thoughts if isinstance(t, str) and t), ""),
        "tool_calls": _tool_calls(choice.message.tool_calls or ()),
        "refusal": choice.message.refusal,
        "annotations": choice.message.annotations,
        "audio": choice.message.audio,
    }
    return {
        "index": choice.index,
        "message": message | {name: value for name, value in optional.items() if value},
        "logprobs": msgspec.json.decode(choice.logprobs) if keep_logprobs else None,
        "finish_reason": _finish(choice),
    }


def _text(content: str | list[JsonObject] | None) -> str | None:
    """Some servers answer in parts, as requests may be written."""
    if not isinstance(content, list):
        return content
    return "".join(part["text"] for part in content if isinstance(part.get("text"), str))


def _tool_calls(calls: Sequence[JsonObject]) -> list[JsonObject]:
    """The calls with a name and an id of its own each. Raises Transient where one names no function."""
    found: list[JsonObject] = []
    for call in calls:
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise Transient("the reply has a tool call that names no function")
        arguments, identity = function.get("arguments"), call.get("id")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else msgspec.json.encode(arguments).decode()
        if not isinstance(identity, str) or not identity or identity in {c["id"] for c in found}:
            identity = f"call_{secrets.token_hex(12)}"
        function = {**function, "arguments": arguments}
        found.append({**call, "id": identity, "type": "function", "function": function})
    return found


def _counts(usage: JsonObject) -> JsonObject:
    """Usage that holds counts, and details that are objects of counts, and nothing else."""
    details = {
        name: {key: tokens(number) for key, number in value.items()}
        for name, value in usage.items()
        if isinstance(value, dict)
    }
    totals = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {name: tokens(usage.get(name)) for name in totals} | details


def _finish(choice: Choice) -> str:
    """Some servers say `stop` to a reply that calls tools; agents loop on `tool_calls`."""
    finish = choice.finish_reason if choice.finish_reason in FINISHES else "stop"
    return "tool_calls" if finish == "stop" and choice.message.tool_calls else finish


def _token_ids(reply: Reply) -> tuple[Sequence[int], Sequence[int]]:
    first = reply.choices[0]
    prompt_ids = reply.prompt_token_ids or first.prompt_token_ids or ()
    return prompt_ids, first.token_ids or first.response_token_ids or ()


def _usage(told: JsonObject, prompt_ids: Sequence[int], response_ids: Sequence[int]) -> Usage:
    """As the server counted; its ids are counted where it did not."""
    return Usage(
        prompt=tokens(told.get("prompt_tokens")) or len(prompt_ids),
        completion=tokens(told.get("completion_tokens")) or len(response_ids),
    )


def _weights(reply: Reply, headers: Mapping[str, str]) -> str:
    metadata = reply.metadata if isinstance(reply.metadata, dict) else {}
    told = (headers.get("x-weight-version"), reply.weight_version, metadata.get("weight_version"))
    return next((str(version) for version in told if version is not None), "")


def _int32(ids: Sequence[int]) -> bytes:
    return array("i", ids).tobytes()
