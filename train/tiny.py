"""A model of the Qwen3 architecture that learns on two CPU cores, with a tokenizer of its own.

The tokenizer is trained on transcripts. Digits are tokens of their own, and a name is the same tokens
wherever it stands (no token holds a space before a capital): copying names and numbers is most of what
the drills ask for. The chat template is ChatML with tools, as Qwen's, without its instructions.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

__all__ = ["TEMPLATE", "make_model", "make_tokenizer", "save"]

END, PAD = "<|im_end|>", "<|endoftext|>"
SPECIAL = [PAD, "<|im_start|>", END]
MARKS = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
]

WORDS = r"[A-Z][a-z]*|[0-9]| ?[a-z_]+|[^A-Za-z0-9_]+"

TEMPLATE = """\
{%- macro open(role) %}{{ '<|im_start|>' + role + '\\n' }}{% endmacro %}
{%- for m in messages %}
{%- if m.role == 'assistant' %}
{{- open('assistant') }}{{ m.content or '' }}
{%- for call in m.tool_calls or [] %}
{{- '<tool_call>' }}{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}
{{- '</tool_call>' }}
{%- endfor %}{{ '<|im_end|>\\n' }}
{%- elif m.role == 'tool' %}
{{- open('user') }}{{ '<tool_response>' + m.content + '</tool_response><|im_end|>\\n' }}
{%- else %}
{{- open(m.role) }}{{ m.content }}
{%- if loop.first and tools %}{{ '\\n# Tools' }}
{%- for tool in tools %}{{ '\\n' }}{{ tool.function | tojson }}{% endfor %}
{%- endif %}{{ '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ open('assistant') }}{% endif %}"""


def make_tokenizer(texts: Iterable[str], vocabulary: int = 768) -> Any:
    """A byte-level BPE tokenizer of at most `vocabulary` tokens."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(MARKS),
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in MARKS])
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=PAD)
    made.chat_template = TEMPLATE
    return made


def make_model(
    tokenizer: Any, *, seed: int, width: int = 128, layers: int = 4, window: int = 1024
) -> Any:
    """Random weights."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    heads = width // 32
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=32,
        max_position_embeddings=window,
        rope_theta=10_000.0,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForCausalLM(config)


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """As `from_pretrained` reads it; the folder is whole or not there."""
    draft = folder.with_name(f".{folder.name}")
    shutil.rmtree(draft, ignore_errors=True)
    model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    draft.rename(folder)
