"""What the page shows of episodes: a row each for the list, and the whole story of one."""

from __future__ import annotations

import base64
import binascii
import bisect
import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from reports.branches import Link, links
from reports.film import frames
from rollout.types import Call, Episode, Image, JsonObject, Record, ToolCall, Trace

__all__ = ["Keep", "detail", "row"]

Keep = Callable[[Image], str]
"""Stores a picture and says under which file name."""

RAW = 20_000
"""Characters that are shown of a reply that can't be read."""

_DATA_URL = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)


class _Thinking(Record, frozen=True, kw_only=True):
    """A reply that is JSON and has a thought."""

    thought: str


def row(run: int, episode: Episode, shard: int) -> list[Any]:
    """An episode in the list: run, id, task, attempt, outcome, score, reason, calls, tool calls,
    prompt tokens, completion tokens, seconds, shard. The page names them in the same order."""
    grade = episode.grade
    reason = episode.reason or episode.limit or (grade.notes[0] if grade and grade.notes else "")
    return [
        run,
        episode.id,
        episode.task_id,
        episode.attempt,
        episode.outcome.value,
        None if grade is None else grade.score,
        reason[:300],
        episode.calls,
        episode.tool_calls,
        episode.usage.prompt,
        episode.usage.completion,
        round(episode.timing.total, 3),
        shard,
    ]


def detail(episode: Episode, trace: Trace, keep: Keep) -> JsonObject:
    """An episode as the viewer tells it. Pictures go through `keep`."""
    names = {digest: name for digest, image in trace.images.items() if (name := keep(image))}
    tree = links(trace.calls)
    asked_by = _asked_by(trace)
    calls = [_call(call, link, names, keep) for call, link in zip(trace.calls, tree, strict=True)]
    tools = [_tool_call(tool, asked_by[tool.index], names) for tool in trace.tool_calls]
    return {
        **_episode(episode),
        "prompt": _prompt(calls),
        "answer": trace.answer,
        "calls": calls,
        "tools": tools,
        "film": _film(trace, calls, asked_by, names),
        "changes": _changes(trace.world),
        "world": _world(trace.world),
        "log": trace.log,
    }


def _episode(episode: Episode) -> JsonObject:
    shown = ("id", "retry", "seed", "cause", "reason", "detail", "limit", "exit_code", "started")
    return {
        **{name: getattr(episode, name) for name in shown},
        "timed_out": episode.timed_out,
        "timing": {
            name: getattr(episode.timing, name) for name in episode.timing.__struct_fields__
        },
        "grade": None if episode.grade is None else _grade(episode),
    }


def _grade(episode: Episode) -> JsonObject:
    grade = episode.grade
    return {
        name: getattr(grade, name) for name in ("score", "passed", "parts", "notes", "evidence")
    }


def _call(call: Call, link: Link, names: Mapping[str, str], keep: Keep) -> JsonObject:
    return {
        "index": call.index,
        "kind": call.kind,
        "agent": call.agent,
        "branch": link.branch,
        "parent": link.parent,
        "shared": link.shared,
        "status": call.status,
        "finish": call.finish,
        "seconds": call.seconds,
        "upstream": call.upstream_seconds,
        "tries": call.tries,
        "model": call.model,
        "tokens": [call.usage.prompt, call.usage.completion],
        "heard": [_message(message, names, keep) for message in link.heard],
        "said": None if link.said is None else _message(link.said, names, keep),
        "raw": call.reply.decode(errors="replace")[:RAW] if link.said is None else "",
    }


def _message(message: JsonObject, names: Mapping[str, str], keep: Keep) -> JsonObject:
    """Role, text, and where there are any: thought, tool calls, pictures."""
    content = message.get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    shown = {
        "role": message["role"],
        "text": "\n".join(filter(None, map(_text, parts))),
        "thought": str(message.get("reasoning_content") or message.get("reasoning") or ""),
        "asks": [_asked(call) for call in message.get("tool_calls") or ()],
        "pictures": [name for part in parts if (name := _picture(part, names, keep))],
    }
    return {key: value for key, value in shown.items() if value or key in ("role", "text")}


def _text(part: Any) -> str:
    if not isinstance(part, dict) or part.get("type") == "image_url":
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else msgspec.json.encode(part).decode()


def _asked(call: JsonObject) -> JsonObject:
    """A tool call as the model wrote it; arguments that are no JSON stay text."""
    function = call["function"]
    arguments: Any = function.get("arguments") or "{}"
    with contextlib.suppress(msgspec.DecodeError, TypeError):
        arguments = msgspec.json.decode(arguments)
    return {"name": str(function["name"]), "arguments": arguments}


def _picture(part: Any, names: Mapping[str, str], keep: Keep) -> str:
    """The file of a picture in a message: inline as a data URL, or named by its digest."""
    if not isinstance(part, dict) or part.get("type") != "image_url":
        return ""
    shown = part.get("image_url")
    url = str(shown.get("url", "") if isinstance(shown, dict) else shown)
    if inline := _DATA_URL.fullmatch(url):
        try:
            return keep(Image(data=base64.b64decode(inline[2]), media_type=inline[1]))
        except binascii.Error:
            return ""
    return next((name for digest, name in names.items() if digest in url), "")


def _tool_call(tool: ToolCall, asked_by: int | None, names: Mapping[str, str]) -> JsonObject:
    return {
        "index": tool.index,
        "call": asked_by,
        "name": tool.name,
        "arguments": tool.arguments,
        "status": tool.status,
        "reply": tool.reply,
        "seconds": tool.seconds,
        "surface": tool.surface,
        "pictures": [names[digest] for digest in tool.images if digest in names],
    }


def _asked_by(trace: Trace) -> dict[int, int | None]:
    """For each tool call the model call that was answered last before it, by the clock.

    Through a shell (`curl`) nothing else ties the two together.
    """
    ends = sorted((call.started + call.seconds, n) for n, call in enumerate(trace.calls))
    times = [end for end, _ in ends]
    found: dict[int, int | None] = {}
    for tool in trace.tool_calls:
        place = bisect.bisect_right(times, tool.started)
        found[tool.index] = ends[place - 1][1] if place else None
    return found


def _prompt(calls: Sequence[JsonObject]) -> str:
    """The last words of the user before the agent's first reply: harnesses put their own before them."""
    first = next((call for call in calls if call["kind"] == "main" and call["said"]), None)
    heard = first["heard"] if first else ()
    return next((m["text"] for m in reversed(heard) if m["role"] == "user"), "")


def _film(
    trace: Trace,
    calls: Sequence[JsonObject],
    asked_by: Mapping[int, int | None],
    names: Mapping[str, str],
) -> list[JsonObject]:
    thoughts = {tool: _said(calls[call]) for tool, call in asked_by.items() if call is not None}
    strip = frames(trace.tool_calls, thoughts)
    return [{**frame, "picture": names.get(frame["picture"], "")} for frame in strip]


def _said(call: JsonObject) -> str:
    """Its thought, else its words; of a reply in JSON (MolmoWeb) the `thought` in it."""
    said = call["said"] or {}
    text = str(said.get("thought") or said.get("text") or "")
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(text, type=_Thinking).thought
    return text


def _world(world: JsonObject) -> JsonObject:
    """The snapshot without Claw's log of calls, which the tool calls tell already."""
    audit = world.get("audit")
    if not isinstance(audit, dict):
        return world
    states = {
        service: {key: value for key, value in state.items() if key != "calls"}
        for service, state in audit.items()
        if isinstance(state, dict)
    }
    return {**world, "audit": states}


def _changes(world: JsonObject) -> list[JsonObject]:
    """What the snapshot says the agent left behind: each part of the state that is not empty.

    Claw's audit has, beside the log of calls, lists of what each service was made to send, create,
    change or delete; a browser's world has the state of its sites and what was downloaded.
    """
    audit, found = world.get("audit"), []
    if isinstance(audit, dict):
        for service, state in audit.items():
            parts = state.items() if isinstance(state, dict) else ()
            found += [
                {"where": service, "what": what, "value": value}
                for what, value in parts
                if what != "calls" and value not in ({}, [], None, "")
            ]
    found += [
        {"where": "browser", "what": what, "value": world[what]}
        for what in ("site", "downloads", "blocked")
        if world.get(what)
    ]
    return found
