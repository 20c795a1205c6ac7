"""A model of the Qwen3 architecture that learns on two CPU cores, with a tokenizer of its own.

The tokenizer is trained on transcripts. Digits are tokens of their own, and a name is the same tokens
wherever it stands (no token holds a space before a capital): copying names and numbers is most of what
the drills ask for. The chat template is ChatML with tools, as Qwen's, without its instructions.

    python -m train.tiny FOLDER        one with random weights, to try the trainers with: it babbles
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rollout.errors import UsageError
from rollout.options import Parser
from suites.office_drills import OfficeDrills
from train.packages import need_torch

__all__ = ["TEMPLATE", "main", "make_model", "make_tokenizer", "save"]

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

WINDOW = 8192
"""Tokens: enough for a drill in any in-process harness."""

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
    import torch
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


def main(argv: Sequence[str] | None = None) -> None:
    """Write a checkpoint with random weights; exits with 0 or 2."""
    parser = Parser(prog="python -m train.tiny", description="A tiny model with random weights.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where it is written")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the weights (0)")
    try:
        _write(parser.parse_args(argv))
    except (UsageError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _write(options: argparse.Namespace) -> None:
    if options.folder.exists():
        raise UsageError(f"{options.folder} is there already: choose another folder")
    need_torch("train.tiny")
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(_texts())
    model = make_model(tokenizer, seed=options.seed, window=WINDOW)
    save(model, tokenizer, options.folder)
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"{size:,} parameters, a window of {WINDOW:,} tokens, in {options.folder}")


def _texts() -> Iterator[str]:
    """Prompts and tools of the drills: what such a model is likely to be shown."""
    for task in OfficeDrills().tasks(None):
        yield task.prompt
        yield from (msgspec.json.encode(tool).decode() for tool in task.tools)


if __name__ == "__main__":
    main()
