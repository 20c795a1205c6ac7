"""What an agent heard and said, out of the records of its model calls, whatever dialect it spoke."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from rollout.gateway.dialects import DIALECTS
from rollout.types import Call, JsonObject, Trace

__all__ = ["UNREADABLE", "Turn", "chat_messages", "main_calls", "said", "turns"]

UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""An agent may send anything, and its dialect may make nothing of it."""


@dataclass(frozen=True)
class Turn:
    """One reply of the model to the agent itself, as chat messages."""

    heard: tuple[JsonObject, ...]
    """What came since the reply before: tool results, words of the user or of the harness."""
    said: JsonObject


def main_calls(trace: Trace) -> list[Call]:
    """The calls by which the agent itself was answered: no sub-agent, summary, title or the like.

    A request that was sent again as it was replaces the one before: its reply got lost.
    """
    calls: list[Call] = []
    for call in trace.calls:
        if call.kind == "main" and call.status < 400:
            if calls and calls[-1].request == call.request:
                calls.pop()
            calls.append(call)
    return calls


def turns(trace: Trace) -> list[Turn]:
    """The agent's conversation reply by reply, complete even where its history was shortened."""
    found: list[Turn] = []
    for call in main_calls(trace):
        try:
            heard = _since_reply(_translated(call, asked=True))
        except UNREADABLE:
            continue
        if reply := said(call):
            found.append(Turn(heard=tuple(heard), said=reply))
    return found


def said(call: Call) -> JsonObject | None:
    """The reply to a call as a chat message; None where nothing can be made of it."""
    try:
        message = _translated(call, replied=True)[-1]
    except UNREADABLE:
        return None
    return message if message["role"] == "assistant" else None


def chat_messages(call: Call) -> list[JsonObject]:
    """A call's request and its reply as one row of chat messages.

    The reply becomes the request's last turn first, as the harness would send it back, so that the
    dialect's own translation applies to both.
    """
    return _translated(call, asked=True, replied=True)


def _translated(call: Call, *, asked: bool = False, replied: bool = False) -> list[JsonObject]:
    """The conversation that a call's request and reply hold, or one of the two alone."""
    body, reply = msgspec.json.decode(call.request), msgspec.json.decode(call.reply)
    field = "input" if call.dialect == "responses" else "messages"
    before, after = (body[field] if asked else []), []
    if isinstance(before, str):
        before = [{"type": "message", "role": "user", "content": before}]
    if replied and call.dialect == "chat":
        after = [reply["choices"][0]["message"]]
    elif replied and call.dialect == "messages":
        after = [{"role": "assistant", "content": reply["content"]}]
    elif replied:
        after = reply["output"]
    chat, _ = DIALECTS[call.dialect].to_chat({**body, field: [*before, *after]})
    messages: list[JsonObject] = chat["messages"]
    return messages


def _since_reply(history: list[JsonObject]) -> list[JsonObject]:
    for n in range(len(history), 0, -1):
        if history[n - 1]["role"] == "assistant":
            return history[n:]
    return history
