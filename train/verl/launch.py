"""Starts verl's own main program with one of our recipes: `python -m train.grpo --trainer verl`.

Nothing here imports verl before it is asked for, so that a missing one can be told in one line.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rollout.errors import UsageError

__all__ = ["DEFAULT", "check", "command", "launch", "overrides", "plan"]

DEFAULT = "anyharness"
"""The recipe that only says what every run needs."""

RECIPES = Path(__file__).parent / "recipes"

VERLS_LATEST = "latest_checkpointed_iteration.txt"
"""verl goes on from what this file names, asked for or not."""

NEEDED = "verl", "ray", "transfer_queue", "vllm"


ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"

FIELDS: Mapping[str, tuple[str, ...]] = {
    "suite": ("anyharness.suite",),
    "harness": ("anyharness.harness",),
    "eval": ("anyharness.val_suite",),
    "eval_harness": ("anyharness.val_harness",),
    "eval_every": ("trainer.test_freq",),
    "model": ("actor_rollout_ref.model.path",),
    "steps": ("trainer.total_training_steps",),
    "batch": ("data.train_batch_size", f"{ACTOR}.ppo_mini_batch_size"),
    "group": (f"{ROLLOUT}.n",),
    "learning_rate": (f"{ACTOR}.optim.lr",),
    "warmup": (f"{ACTOR}.optim.lr_warmup_steps",),
    "epochs": (f"{ACTOR}.ppo_epochs",),
    "clip_low": (f"{ACTOR}.clip_ratio_low",),
    "clip_high": (f"{ACTOR}.clip_ratio_high",),
    "estimator": ("anyharness.estimator",),
    "temperature": (f"{ROLLOUT}.temperature",),
    "max_tokens": ("anyharness.max_tokens",),
    "engine_memory": (f"{ROLLOUT}.gpu_memory_utilization",),
    "seed": ("data.seed",),
}
"""Options of `python -m train.grpo` -> what they are in verl's config."""

ELSEWHERE: Mapping[str, str] = {
    "concurrency": "anyharness.concurrency=N (in each of verl's rollout workers)",
    "sandbox": "anyharness.options='--sandbox KIND'",
    "engine": f"{ROLLOUT}.name=NAME (vllm where it is left out)",
    "mini_batches": f"anyharness.one_update=false {ACTOR}.ppo_mini_batch_size=TASKS",
}
"""Options that mean something else to the local trainer, and what to write instead."""


def overrides(options: Mapping[str, Any], more: Sequence[str] = ()) -> list[str]:
    """The options that were given as overrides of verl's config; `more` are such already, and win.

    Raises UsageError for an option that verl has no equal of.
    """
    given = {name: value for name, value in options.items() if value is not None}
    for name in given.keys() & ELSEWHERE.keys():
        option = name.replace("_", "-")
        raise UsageError(f"--{option}: with --trainer verl, write {ELSEWHERE[name]}")
    told = {field: given[name] for name in FIELDS if name in given for field in FIELDS[name]}
    told |= _kl(given.get("kl")) | _aggregation(given.get("aggregation"))
    if (out := given.get("out")) is not None:
        if not given.get("resume") and (out / "checkpoints" / VERLS_LATEST).exists():
            raise UsageError(f"{out} holds a training: add --resume, or choose another --out")
        # Workers are in other folders.
        told["trainer.default_local_dir"] = str(out.resolve() / "checkpoints")
        told["anyharness.out"] = str(out.resolve() / "rollouts")
    return [f"{name}={_written(value)}" for name, value in told.items()] + list(more)


def _kl(weight: float | None) -> dict[str, Any]:
    """The divergence from the initial model, as the local trainer has it (k3)."""
    if weight is None:
        return {}
    told = {f"{ACTOR}.use_kl_loss": weight > 0, f"{ACTOR}.kl_loss_coef": weight}
    return told | {f"{ACTOR}.kl_loss_type": "low_var_kl"}


def _aggregation(mode: str | None) -> dict[str, Any]:
    if mode in (None, "episode-mean"):
        return {} if mode is None else {"anyharness.episode_weights": True}
    return {"anyharness.episode_weights": False, f"{ACTOR}.loss_agg_mode": mode}


def check(recipe: str, overrides: Sequence[str]) -> list[str]:
    """What is wrong with a run, one line a field; nothing is started. Raises UsageError without verl."""
    _need("verl")
    from train.verl.check import compose_recipe, problems

    try:
        return problems(compose_recipe(recipe, overrides))
    except UsageError as error:
        return [str(error)]


def plan(recipe: str, overrides: Sequence[str]) -> str:
    """What would be started, for people."""
    from train.verl.check import compose_recipe

    config = compose_recipe(recipe, overrides)
    ours, rollout, trainer = config.anyharness, config.actor_rollout_ref.rollout, config.trainer
    batch = f"{config.data.train_batch_size} tasks x {rollout.n} episodes a step"
    gpus = f"{trainer.nnodes} x {trainer.n_gpus_per_node} GPUs"
    return "\n".join(
        (
            f"{ours.suite} with {ours.harness}: {batch}, {config.actor_rollout_ref.model.path}",
            f"{gpus}, {trainer.v1.trainer_mode}, {rollout.agent.num_workers} rollout workers",
            shlex.join(command(recipe, overrides)),
        )
    )


def command(recipe: str, overrides: Sequence[str]) -> list[str]:
    """verl's main program with this recipe."""
    folder = ["--config-dir", str(RECIPES), "--config-name", recipe]
    return [sys.executable, "-m", "verl.trainer.main_ppo", *folder, *overrides]


def environment() -> Mapping[str, str]:
    """What the program needs in its environment beside what is there."""
    return {"VERL_USE_EXTERNAL_MODULES": "train.verl.plugin"}


def launch(recipe: str, overrides: Sequence[str]) -> NoReturn:
    """Become verl's main program. Raises UsageError for a wrong config or a missing package."""
    if wrong := check(recipe, overrides):
        raise UsageError("; ".join(wrong))
    for package in NEEDED:
        _need(package)
    argv = command(recipe, overrides)
    os.execve(argv[0], argv, {**os.environ, **environment()})


def _need(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise UsageError(
            f"--trainer verl needs the Python package {package!r}: pip install"
            " 'verl[verl-core,vllm]==0.9.1' (make verl-cpu has all but vLLM, enough for --check)"
        )


def _written(value: Any) -> str:
    """A value in hydra's grammar: text in quotes, for suites have options."""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
