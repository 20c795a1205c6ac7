"""Episodes as conversations for supervised fine-tuning: one row per branch.

Branches are told apart by what was said, not by token ids, so any model's episodes will do, and a harness
that sends its history back without the old reasoning has one long row and not one per turn. Each reply of
the model is listed as trained in one row only; other assistant messages are context.

Rows have one shape, because Parquet and `datasets` fill what differs with nulls, which templates would
render: tools and arguments are JSON texts, content is text, and images stand as `<image>` in it.
`template_of` turns a row into what a chat template takes.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from rollout.gateway.dialects import DIALECTS
from rollout.pictures import inlined
from rollout.transcript import UNREADABLE
from rollout.types import Call, DialectName, Episode, Image, JsonObject, Record, Trace
from train.messages import canonical, conversation, for_template, image_urls
from train.samples import Calls, left_out
from train.tree import Turn, forest

__all__ = ["IMAGE", "SftReport", "SftRow", "plain", "sft_rows", "template_of"]

IMAGE = "<image>"

_FIELD: dict[DialectName, tuple[str, str]] = {
    "chat": ("messages", ""),
    "messages": ("messages", "system"),
    "responses": ("input", "instructions"),
}
"""Where a request has its history, and its system prompt if that stands apart."""


class SftRow(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One conversation."""

    episode_id: str
    task_id: str
    attempt: int
    branch: int
    kind: str
    agent: str
    reward: float | None
    messages: list[JsonObject]
    """Of role, content, reasoning_content, tool_calls, tool_call_id; null where there is none."""
    tools: str
    """JSON list, as chat-completions has it."""
    trained: list[int]
    """Positions of the messages that this episode's policy said and that no other row trains."""
    images: list[str]
    """URLs, one for each `<image>` in order; recorded ones hold the picture."""

    @property
    def size(self) -> int:
        """Bytes that it takes, roughly."""
        texts = sum(len(message["content"]) for message in self.messages)
        return texts + len(self.tools) + sum(map(len, self.images)) + 500 * len(self.messages)


class SftReport(msgspec.Struct):
    """Counts of calls and rows."""

    calls: int = 0
    refused: int = 0
    unreadable: int = 0
    """Requests, replies or attachments that chat messages can't hold."""
    silent: int = 0
    """Replies that say nothing and call nothing."""
    retries: int = 0
    by_policy: int = 0
    unplaced: int = 0
    """Replies that the next requests no longer show as they were: context, not trained."""
    rows: int = 0

    def add(self, other: SftReport) -> None:
        """Count another report's episodes too."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def sft_rows(
    episode: Episode, trace: Trace, calls: Calls = "all"
) -> tuple[list[SftRow], SftReport]:
    """The episode's conversations, and what became of each call."""
    report = SftReport(calls=len(trace.calls))
    reader = _Reader()
    kept: list[Call] = []
    turns: list[Turn] = []
    for call in trace.calls:
        if call.status != 200:
            report.refused += 1
        elif left_out(call.kind, calls):
            report.by_policy += 1
        elif (turn := _turn(call, reader, report)) is not None:
            kept.append(call)
            turns.append(turn)
    tree = forest(turns)
    report.retries = len(tree.twins)
    chains = sorted(tree.chains, key=lambda chain: kept[chain[0]].index)
    if calls == "longest" and chains:
        longest = max(chains, key=lambda chain: len(turns[chain[-1]].whole))
        report.by_policy += sum(len(chain) for chain in chains if chain is not longest)
        chains = [longest]
    rows: list[SftRow] = []
    for chain in chains:
        try:
            row = _row(episode, len(rows), [kept[i] for i in chain], trace.images)
        except ValueError:
            report.unreadable += len(chain)
        else:
            rows.append(row)
            report.unplaced += len(chain) - len(row.trained)
    report.rows = len(rows)
    return rows, report


def template_of(row: Mapping[str, Any]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Messages and tools of a row that was read back, as chat templates take them."""
    return for_template(row["messages"]), msgspec.json.decode(row["tools"])


class _Request(msgspec.Struct):
    """The parts of a request that make its history, unread."""

    messages: list[msgspec.Raw] | None = None
    input: msgspec.Raw = msgspec.Raw()
    system: msgspec.Raw = msgspec.Raw()
    instructions: msgspec.Raw = msgspec.Raw()


class _Choice(msgspec.Struct):
    message: msgspec.Raw


class _Reply(msgspec.Struct):
    choices: list[_Choice] | None = None
    content: msgspec.Raw = msgspec.Raw()
    output: list[msgspec.Raw] | None = None


Items: TypeAlias = Sequence[msgspec.Raw]


class _Reader:
    """Numbers what is said in an episode: the same number, the same words.

    A history is sent again with every call: each of its items is read once, then known by its bytes.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._known: dict[tuple[str, bytes], list[int]] = {}

    def read(self, dialect: DialectName, items: Items, system: msgspec.Raw) -> list[int]:
        """The numbers of a history's items. Raises one of UNREADABLE."""
        field, head = _FIELD[dialect]
        numbers: list[int] = []
        if head and bytes(system):
            numbers += self._item(dialect, head, system, {field: []})
        for item in items:
            numbers += self._item(dialect, field, item, {})
        return numbers

    def _item(
        self, dialect: DialectName, field: str, raw: msgspec.Raw, rest: JsonObject
    ) -> list[int]:
        key = (field, bytes(raw))
        if key not in self._known:
            value = msgspec.json.decode(raw)
            body = {field: value if rest else [value], **rest}
            chat, _ = DIALECTS[dialect].to_chat(body)
            said = [canonical(message, reasoning=False) for message in chat["messages"]]
            self._known[key] = [
                self._numbers.setdefault(one, len(self._numbers))
                for one, message in zip(said, chat["messages"], strict=True)
                if _says(message)
            ]
        return self._known[key]


def _says(message: JsonObject) -> bool:
    """Whether anything is left of a message without its reasoning."""
    return bool(message.get("content") or message.get("tool_calls") or message.get("refusal"))


def _turn(call: Call, reader: _Reader, report: SftReport) -> Turn | None:
    try:
        request = msgspec.json.decode(call.request, type=_Request)
        asked = reader.read(call.dialect, _items(request), request.system or request.instructions)
        said = reader.read(call.dialect, _said(call), msgspec.Raw())
    except UNREADABLE:
        report.unreadable += 1
        return None
    if not said:
        report.silent += 1
        return None
    lineage = (call.kind, call.agent)
    return Turn(array("i", asked + said).tobytes(), len(asked) * 4, lineage)


def _items(request: _Request) -> Items:
    if request.messages is not None:
        return request.messages
    if bytes(request.input).startswith(b'"'):
        text = msgspec.json.decode(request.input)
        return [msgspec.Raw(msgspec.json.encode({"role": "user", "content": text}))]
    return msgspec.json.decode(request.input, type=list[msgspec.Raw])


def _said(call: Call) -> Items:
    reply = msgspec.json.decode(call.reply, type=_Reply)
    if reply.choices is not None:
        return [reply.choices[0].message]
    if reply.output is not None:
        return reply.output
    return [msgspec.Raw(b'{"role":"assistant","content":' + bytes(reply.content) + b"}")]


def _row(
    episode: Episode, branch: int, chain: Sequence[Call], pictures: Mapping[str, Image]
) -> SftRow:
    """The last call's conversation, with what was said before as it was said: reasoning included."""
    told = conversation(chain[-1])
    messages = list(told.messages)
    trained = []
    at = 0
    for call in chain[:-1]:
        said = _reply(call)
        if (position := _find(said, messages, at)) is not None:
            messages[position] = said
            trained.append(position)
            at = position + 1
    trained.append(len(messages) - 1)
    return SftRow(
        episode_id=episode.id,
        task_id=episode.task_id,
        attempt=episode.attempt,
        branch=branch,
        kind=chain[0].kind,
        agent=chain[0].agent,
        reward=episode.grade.score if episode.grade else None,
        messages=[plain(message) for message in messages],
        tools=msgspec.json.encode(told.tools).decode(),
        trained=trained,
        images=[inlined(url, pictures) for message in messages for url in image_urls(message)],
    )


def _reply(call: Call) -> JsonObject:
    field, _ = _FIELD[call.dialect]
    items = [msgspec.json.decode(item) for item in _said(call)]
    chat, _ = DIALECTS[call.dialect].to_chat({field: items})
    said: JsonObject = chat["messages"][-1]
    return said


def _find(said: JsonObject, messages: Sequence[JsonObject], start: int) -> int | None:
    """Where a history has what was said. It may come back without reasoning, and as other JSON."""
    wanted = canonical(said, reasoning=False)
    places = range(start, len(messages))
    return next((i for i in places if canonical(messages[i], reasoning=False) == wanted), None)


def plain(message: JsonObject) -> JsonObject:
    """A message in the shape that all rows have."""
    return {
        "role": message["role"],
        "content": _text(message.get("content") or message.get("refusal")),
        "reasoning_content": message.get("reasoning_content") or None,
        "tool_calls": [_call(call) for call in message.get("tool_calls") or ()] or None,
        "tool_call_id": message.get("tool_call_id"),
    }


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for part in content:
        kind = part.get("type")
        if kind not in ("text", "image_url"):
            raise ValueError(f"content of type {kind!r}")
        texts.append(part["text"] if kind == "text" else IMAGE)
    return "\n".join(texts)


def _call(call: JsonObject) -> JsonObject:
    function = call["function"]
    told = {"name": function["name"], "arguments": function.get("arguments") or "{}"}
    return {"id": call.get("id") or "", "type": "function", "function": told}
