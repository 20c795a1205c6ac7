"""The messages of a chat request, built from formats that cut a conversation up differently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rollout.types import JsonObject

__all__ = ["History", "function_call", "text_part"]


def text_part(text: str) -> JsonObject:
    """Text as a part of a user message."""
    return {"type": "text", "text": text}


def function_call(call_id: str, name: str, arguments: str) -> JsonObject:
    """A tool call of an assistant message."""
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


class History:
    """A conversation in the making."""

    def __init__(self) -> None:
        self._messages: list[JsonObject] = []
        self._attached: list[JsonObject] = []

    def system(self, text: str) -> None:
        """Instructions, from whatever role has authority (system, developer).

        Leading ones merge into one system message: many chat templates allow no second. Later ones keep
        their place as user messages: gpt-oss's template drops a late system message silently, Qwen3.5's
        refuses it, and the model has to see it.
        """
        if not text:
            return
        if not self._messages:
            self._messages.append({"role": "system", "content": text})
        elif len(self._messages) == 1 and self._messages[0]["role"] == "system":
            self._messages[0]["content"] += f"\n\n{text}"
        else:
            self.user([text_part(text)])

    def user(self, parts: Sequence[JsonObject]) -> None:
        """A user message; one text alone becomes a plain string, which every server takes."""
        parts = [*self._attached, *parts]
        self._attached = []
        alone = len(parts) == 1 and parts[0]["type"] == "text"
        self._messages.append({"role": "user", "content": parts[0]["text"] if alone else parts})

    def assistant(
        self,
        text: str = "",
        reasoning: str = "",
        refusal: str = "",
        calls: Iterable[JsonObject] = (),
    ) -> None:
        """Something that the model said. All that it said in one go becomes one message.

        Parallel tool calls thus stand together, as chat templates want them.
        """
        message = self._open_assistant()
        said = (("content", text), ("reasoning_content", reasoning), ("refusal", refusal))
        for key, piece in said:
            if piece:
                message[key] = f"{message[key]}\n\n{piece}" if message.get(key) else piece
        if calls := list(calls):
            message.setdefault("tool_calls", []).extend(calls)

    def tool(self, call_id: str, parts: Sequence[JsonObject]) -> None:
        """A tool's output.

        Most servers take nothing but text in a tool message, so images and files go into the user message
        that follows the turn's last output, and the text says where they belong.
        """
        texts: list[str] = []
        for part in parts:
            if part["type"] == "text":
                texts.append(part["text"])
            else:
                texts.append(self._attach(part))
        self._messages.append(
            {"role": "tool", "tool_call_id": call_id, "content": "\n".join(texts)}
        )

    def finish(self) -> list[JsonObject]:
        """The messages."""
        self._flush()
        for message in self._messages:
            if message.get("tool_calls") and not message["content"]:
                message["content"] = None
        return self._messages

    def _open_assistant(self) -> JsonObject:
        self._flush()
        if not self._messages or self._messages[-1]["role"] != "assistant":
            self._messages.append({"role": "assistant", "content": ""})
        return self._messages[-1]

    def _attach(self, part: JsonObject) -> str:
        """Keep `part` for the next user message; the label that stands for it until then."""
        label = f"[attachment {len(self._attached) // 2 + 1}]"
        self._attached += [text_part(label), part]
        return label

    def _flush(self) -> None:
        if self._attached:
            self.user([])
