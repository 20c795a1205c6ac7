"""A tiny chat model: `python tiny_model.py FOLDER` writes a checkpoint that any engine can serve.

A small random Qwen3, a byte-level BPE tokenizer of its own, and a ChatML template with tools, reasoning
and Hermes tool calls. It babbles, but for one HABIT: where a line has ended it thinks, and calls a tool.
So parsers have something to parse that nothing forced upon it. The same seed gives the same files.

Run by the engine's interpreter, which has torch, transformers and tokenizers; it is never imported.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SEED = 0
VOCABULARY = 1024
STRENGTH = 8.0, 4.0
"""Of a habit's own dimension, where a token enters and where the next one is chosen."""

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKERS = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)
"""Tokens of their own, yet text: parsers look for them in what is decoded."""

WORDS = Regex(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen's tokenizers cut text before they merge: each digit by itself."""

HABIT = (
    *(
        "\n",
        "<think>",
        " nine",
        "</think>",
        "<tool_call>",
        '{"',
        "name",
        '":"',
        "clock",
        "_now",
        '","',
    ),
    *("arguments", '":{}}', "</tool_call>", "<|im_end|>"),
)
"""Tokens, none of them twice: what comes after each of them but the last is a matter of course."""

TEXT = (
    '{"name":"clock_now","arguments":{}}',
    "Two lines\n\nand one more, at half past nine.",
    '{"name": "mail_send", "arguments": {"to": "ann@x.org", "body": "See you at nine."}}',
    '{"name": "clock_now", "arguments": {}}',
    '{"name": "notes_add", "arguments": {"text": "buy milk"}}',
    '{"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}',
    '{"type": "function", "function": {"name": "mail_list", "description": "List mails."}}',
    "You are an agent that does the user's task with the tools you are given.",
    "For each function call, return a JSON object with its name and its arguments.",
    "The command ran; its output and exit code are below. Read the file, then edit it.",
    "请把会议改到星期三下午三点，并通知所有参加的人。",
    "客户说报价单已经收到，下周给我们答复。",
)

TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- '# Tools\\n\\nYou may call these functions:\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\\n</tools>\\nFor each call, return a JSON object with its name and its arguments:' }}
    {{- '\\n<tool_call>{"name":...,"arguments":...}</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set state = namespace(asked=0) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}{%- set state.asked = loop.index0 %}{%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content and loop.index0 > state.asked %}
            {{- '<think>' + message.reasoning_content + '</think>' }}
        {%- endif %}
        {%- set said = message.content or '' %}
        {{- said }}
        {%- for call in message.tool_calls or [] %}
            {{- '<tool_call>{"name":"' + call.function.name + '","arguments":' }}
            {{- call.function.arguments | tojson + '}</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {%- if messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- elif message.role != 'system' or not loop.first %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
"""As Qwen3's: the reasoning of turns before the user's last message is left out, the rest is rendered as
it was said. Without thinking, a prompt does not end in a single line's end, so the habit rests."""


def main(folder: Path) -> None:
    tokenizer = make_tokenizer()
    habit = tokenizer.convert_tokens_to_ids([written(token) for token in HABIT])
    tokenizer.save_pretrained(folder)
    make_model(len(tokenizer), habit).save_pretrained(folder)


def written(token: str) -> str:
    """A token as byte-level vocabularies write it."""
    return token.replace(" ", "\u0120").replace("\n", "\u010a")


def make_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(WORDS, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT * 2, trainer)  # what occurs once is not merged
    tokenizer.add_tokens([AddedToken(marker, special=False) for marker in MARKERS])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = TEMPLATE
    return fast


def make_model(vocabulary: int, habit: list[int]) -> Qwen3ForCausalLM:
    torch.manual_seed(SEED)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=65_536,
        # Wide enough that the next token depends on the text: logits differ by several units.
        initializer_range=0.2,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=habit[-1],
        dtype="float32",
    )
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        learn(model, habit)
    return model


def learn(model: Qwen3ForCausalLM, habit: list[int]) -> None:
    """Give each token of the habit a dimension that nothing else uses, and that asks for the next one."""
    embeddings, head = model.get_input_embeddings().weight, model.lm_head.weight
    embeddings *= 5  # or else nothing of the last token would be left in the end
    outputs = [
        w for n in model.model.layers for w in (n.self_attn.o_proj.weight, n.mlp.down_proj.weight)
    ]
    for output in outputs:
        output *= 0.1
    for dimension, (token, following) in enumerate(pairwise(habit)):
        for output in outputs:
            output[dimension] = 0
        embeddings[:, dimension] = head[:, dimension] = 0
        embeddings[token, dimension], head[following, dimension] = STRENGTH


if __name__ == "__main__":
    main(Path(sys.argv[1]))
