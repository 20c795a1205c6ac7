"""Token ids made from text, for runs whose server gave none. Not what the policy saw: an approximation.

A model samples ids that its tokenizer would not choose for the same text, templates drop and reorder what
harnesses send, and tool parsers lose what they can't parse. Samples made here say `exact=False`, have no
log-probabilities, and their importance ratios can't be right. They do for SFT and for experiments.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from rollout.errors import UsageError
from rollout.types import Call, JsonObject
from train.messages import conversation, for_template

__all__ = ["Render", "from_pretrained", "tokenized"]


class Render(Protocol):
    """A chat template with its tokenizer, e.g. made of `transformers`' `apply_chat_template`."""

    def __call__(
        self,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
        *,
        add_generation_prompt: bool,
    ) -> Sequence[int]: ...


def tokenized(call: Call, render: Render) -> Call:
    """The call with ids of its text. What the reply adds to the rendered request counts as sampled.

    The template's closing tokens after the reply count with it. Raises ValueError as `conversation` does.
    """
    told = conversation(call)
    asked, said = told.messages[: told.asked], told.messages
    prompt = list(render(asked, told.tools, add_generation_prompt=True))
    whole = list(render(said, told.tools, add_generation_prompt=False))
    shared = _shared(prompt, whole)
    return msgspec.structs.replace(
        call, prompt_ids=_int32(whole[:shared]), response_ids=_int32(whole[shared:]), logprobs=b""
    )


def _shared(prompt: Sequence[int], whole: Sequence[int]) -> int:
    """Usually all of the prompt; some templates open a reply otherwise than they render it later."""
    pairs = zip(prompt, whole, strict=False)
    different = (i for i, (asked, said) in enumerate(pairs) if asked != said)
    return next(different, min(len(prompt), len(whole)))


def _int32(ids: Sequence[int]) -> bytes:
    return array("i", ids).tobytes()


def from_pretrained(path: str) -> Render:
    """The chat template and tokenizer of a model's folder. Raises UsageError where that can't be had."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise UsageError(f"tokenizer {path}: needs `pip install transformers`") from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"tokenizer {path}: {str(error).splitlines()[0]}") from error
    return render_with(tokenizer)


def render_with(tokenizer: Any) -> Render:
    """A tokenizer's chat template, as `Render`."""

    def render(
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
        *,
        add_generation_prompt: bool,
    ) -> Sequence[int]:
        ids: Sequence[int] = tokenizer.apply_chat_template(
            for_template(messages),
            tools=tools or None,
            add_generation_prompt=add_generation_prompt,
            return_dict=False,
        )
        return ids

    return render
