"""An attempt's records in the shape that claw-eval's graders read (src/claw_eval/models/trace.py).

Two things differ from a trace of claw-eval's own loop, because a real harness is in between: words that
the harness puts into the user's mouth are left out, and its own tools (a shell, a plan) are shown under
the names that it gave them. A call of a task's tool is shown under the task's name, with the service's
reply, however the harness wrapped either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.claw.user import PREFIX
from rollout.gateway.upstreams._conversation import tool_of
from rollout.transcript import turns
from rollout.types import JsonObject, ToolCall, Trace

__all__ = ["attached", "dispatches", "messages"]


def attached(documents: Mapping[str, str]) -> list[str]:
    """Attached documents (name -> path) as claw-eval shows them (runner/media_loader.py)."""
    return [
        f"[attached document: {name}]\n{Path(path).read_text('utf-8', errors='replace')}"
        for name, path in documents.items()
    ]


def messages(trace: Trace, prompt: str, documents: Mapping[str, str]) -> list[JsonObject]:
    """The conversation of the agent itself: no sub-agent, no summary, no title or the like."""
    calls = _Dispatched(trace.tool_calls)
    found = [_message("user", [_text(part) for part in (prompt, *attached(documents))])]
    uses: list[_Use] = []
    for turn in turns(trace):
        if results := list(_results(uses, [m for m in turn.heard if m["role"] == "tool"])):
            found.append(_message("user", results))
        found += [_message("user", [_text(words)]) for words in map(_words, turn.heard) if words]
        uses = [calls.use(asked) for asked in turn.said.get("tool_calls") or ()]
        found.append(_said(turn.said, uses))
    return _with_answer(found, trace.answer)


def dispatches(calls: Iterable[ToolCall]) -> list[JsonObject]:
    """One for each call of a tool, whoever made it. The URL is the task's to add."""
    return [
        {
            "tool_use_id": f"call_{call.index}",
            "tool_name": call.name,
            "request_body": _object(call.arguments),
            "response_status": call.status,
            "response_body": call.reply,
            "latency_ms": call.seconds * 1000,
        }
        for call in calls
    ]


@dataclass(frozen=True)
class _Use:
    """A tool call of the model."""

    id: str
    """As the harness sends it back."""
    block: JsonObject
    """As the graders read it."""
    call: ToolCall | None
    """The dispatch behind it; None for a tool of the harness's own."""


class _Dispatched:
    """The log of dispatched calls, each of which answers one call that the model made."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self._left = list(calls)
        self._names = [call.name for call in calls]

    def use(self, asked: JsonObject) -> _Use:
        """A tool call of a chat message, with the dispatch that it led to."""
        function = asked.get("function") or {}
        shown, arguments = str(function.get("name")), _arguments(function.get("arguments"))
        call = self._take(tool_of(shown, self._names), arguments)
        block = {
            "type": "tool_use",
            "id": f"call_{call.index}" if call else str(asked.get("id")),
            "name": call.name if call else shown,
            "input": _object(arguments),
        }
        return _Use(str(asked.get("id")), block, call)

    def _take(self, name: str, arguments: Any) -> ToolCall | None:
        """The first dispatch of the tool that is not taken; one with these arguments comes first."""
        named = [call for call in self._left if call.name == name]
        same = [call for call in named if call.arguments == arguments]
        found = next(iter(same or named), None)
        if found is not None:
            self._left.remove(found)
        return found


def _said(said: JsonObject, uses: Sequence[_Use]) -> JsonObject:
    text = _words_of(said.get("content"))
    message = _message("assistant", [*([_text(text)] if text else []), *(u.block for u in uses)])
    thought = said.get("reasoning_content") or said.get("reasoning")
    return message | {"reasoning_content": str(thought)} if thought else message


def _results(uses: Sequence[_Use], told: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """What each call came to: the service's reply, else what the harness told the model."""
    by_id = {str(message.get("tool_call_id")): message for message in told}
    for n, use in enumerate(uses):
        # Harnesses may give calls other ids when they send them back; the order stays.
        message = by_id.get(use.id) or (told[n] if n < len(told) else None)
        if message is not None:
            call = use.call
            text = _json(call.reply) if call else _words_of(message.get("content"))
            yield {
                "type": "tool_result",
                "tool_use_id": use.block["id"],
                "content": [_text(text)],
                "is_error": call is not None and call.status >= 400,
            }


def _words(message: JsonObject) -> str:
    """What the simulated user said in a message; empty where the harness spoke in the user's name."""
    if message["role"] != "user":
        return ""
    _, begins, words = _words_of(message.get("content")).partition(PREFIX)
    return begins + words


def _with_answer(found: list[JsonObject], answer: str) -> list[JsonObject]:
    """The harness's final message is the last that the agent said."""
    last = found[-1]
    if last["role"] != "assistant" or any(b["type"] == "tool_use" for b in last["content"]):
        return [*found, _message("assistant", [_text(answer)])] if answer else found
    if answer.strip() in "".join(block["text"] for block in last["content"]):
        return found
    return [*found[:-1], last | {"content": [_text(answer)]}]


def _message(role: str, content: list[JsonObject]) -> JsonObject:
    return {"role": role, "content": content}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _words_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(str(p["text"]) for p in parts if isinstance(p, dict) and "text" in p)


def _arguments(sent: Any) -> Any:
    try:
        return json.loads(sent or "{}")
    except ValueError:
        return sent


def _object(value: Any) -> JsonObject:
    """Arguments as the graders' models want them; what is no object becomes one."""
    if isinstance(value, dict):
        return value
    return {} if value is None else {"arguments": value}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
