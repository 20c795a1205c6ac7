"""verl without GPUs: a tiny model's folder, a scripted client of its servers, prompts of its trainer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from support.tiny_model import make_tokenizer
from transformers import AutoTokenizer, Qwen2VLProcessor, Qwen3Config
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import collate_fn
from verl.workers.rollout.replica import TokenOutput

from train.verl.check import compose_recipe
from train.verl.data import SuiteTasks
from train.verl.launch import overrides

__all__ = ["SUITE", "Scripted", "config", "model_folder", "prompts", "vision"]

VISION = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]

TEMPLATE = """\
{%- macro said(content) %}
{%- if content is string %}{{- content }}
{%- else %}{%- for part in content or [] %}
{%- if part.type == 'text' %}{{- part.text }}
{%- else %}{{- '<|vision_start|><|image_pad|><|vision_end|>' }}{%- endif %}
{%- endfor %}{%- endif %}
{%- endmacro %}
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'tool' %}{{- '<tool_response>\\n' + said(m.content) + '</tool_response>' }}
{%- else %}{{- said(m.content) }}{%- endif %}
{%- for call in m.tool_calls or [] %}
{{- '<tool_call>{"name":"' + call.function.name + '","arguments":' }}
{{- call.function.arguments | tojson + '}</tool_call>' }}
{%- endfor %}{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""
"""With a place for each picture."""

SUITE = "support.toy_suite --tasks 4"


def model_folder(folder: Path) -> Path:
    """A tokenizer and a config, no weights: what a rollout worker loads of a model."""
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(folder)
    Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        architectures=["Qwen3ForCausalLM"],
        eos_token_id=tokenizer.eos_token_id,
    ).save_pretrained(folder)
    return folder


def vision(model: Path) -> Any:
    """Qwen2-VL's processor around the model's tokenizer; for videos torchvision is missing."""

    class Pictures(Qwen2VLProcessor):
        def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
            return argument and super().check_argument_for_proper_class(name, argument)

    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.add_special_tokens({"additional_special_tokens": VISION})
    images = Qwen2VLImageProcessorPil()
    return Pictures(image_processor=images, tokenizer=tokenizer, chat_template=TEMPLATE)


def config(model: Path, *more: str) -> Any:
    """The recipe that every run has, made small."""
    return compose_recipe(
        "anyharness",
        overrides(
            {"suite": SUITE, "harness": "react", "model": str(model)},
            [
                "anyharness.concurrency=8",
                "anyharness.max_tokens=256",
                "data.train_batch_size=2",
                "data.max_prompt_length=2048",
                "data.max_response_length=2048",
                "actor_rollout_ref.rollout.n=4",
                "actor_rollout_ref.rollout.agent.num_workers=2",
                "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
                *more,
            ],
        ),
    )


class Scripted:
    """Answers token ids with token ids, as `LLMServerClient` does.

    Episodes get fates in the order in which they begin. `right` saves the note, and so does `thinks`,
    whose thought is not in the next prompt, so that its calls don't merge; `wrong` only says so;
    `explode` breaks the world; `aborted` is cut off once by a weight update, and then right.
    """

    def __init__(self, model: Path, fates: Sequence[str], version: int = 3) -> None:
        self.model, self.fates, self.version = model, tuple(fates), version
        self.asked: list[dict[str, Any]] = []
        self._fate: dict[str, str] = {}
        self._cut: set[str] = set()
        self.tokenizer: Any = None

    async def generate(
        self,
        request_id: str,
        *,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        image_data: Any = None,
        **_: Any,
    ) -> TokenOutput:
        if self.tokenizer is None:
            self.tokenizer = AutoTokenizer.from_pretrained(self.model)
        self.asked.append({"request": request_id, "images": image_data, **sampling_params})
        order = len(self._fate)
        fate = self._fate.setdefault(request_id, self.fates[order % len(self.fates)])
        steps = {"global_steps": self.version}
        if fate == "aborted" and request_id not in self._cut:
            self._cut.add(request_id)
            self.version += 1
            return TokenOutput(token_ids=[], stop_reason="aborted", extra_fields=steps)
        said = _reply(self.tokenizer.decode(prompt_ids), fate) + "<|im_end|>"
        ids = self.tokenizer.encode(said)[: sampling_params["max_tokens"]]
        logprobs = [-0.5] * len(ids) if sampling_params["logprobs"] else None
        steps |= {"min_global_steps": self.version, "max_global_steps": self.version}
        return TokenOutput(
            token_ids=ids, log_probs=logprobs, stop_reason="completed", extra_fields=steps
        )


def _reply(prompt: str, fate: str) -> str:
    note = prompt.rpartition("Save a note: ")[2].partition("<")[0]
    if fate == "wrong" or "<tool_response>\n{" in prompt:
        return f"Saved {note}."
    arguments = json.dumps({"text": "explode" if fate == "explode" else note})
    call = f'<tool_call>{{"name":"notes_add","arguments":{arguments}}}</tool_call>'
    return f"<think>so</think>\n\n{call}" if fate == "thinks" else call


def prompts(
    config: Any, uids: Sequence[str], *, step: int = 4, validate: bool = False, suite: str = SUITE
) -> Any:
    """A batch as `PPOTrainer` makes it of the dataset (`_next_train_batch`, `_validate`)."""
    rows = SuiteTasks(suite, None, config.data)
    batch = collate_fn([rows[i % len(rows)] for i in range(len(uids))])
    batch["uid"] = np.array(uids, dtype=object)
    told = tu.get_tensordict(batch)
    tu.assign_non_tensor_data(told, "global_steps", step)
    if validate:
        tu.assign_non_tensor_data(told, "validate", True)
    return told
