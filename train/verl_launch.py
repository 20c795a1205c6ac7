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
from typing import NoReturn

from rollout.errors import UsageError

__all__ = ["DEFAULT", "check", "command", "launch", "overrides", "plan"]

DEFAULT = "anyharness"
"""The recipe that only says what every run needs."""

RECIPES = Path(__file__).parent / "recipes"

NEEDED = "verl", "ray", "transfer_queue", "vllm"


def overrides(
    *, suite: str = "", harness: str = "", model: str = "", more: Sequence[str] = ()
) -> list[str]:
    """Command-line options as overrides of verl's config; `more` are such already, and win."""
    told = {
        "anyharness.suite": suite,
        "anyharness.harness": harness,
        "actor_rollout_ref.model.path": model,
    }
    return [f"{name}={_quoted(value)}" for name, value in told.items() if value] + list(more)


def check(recipe: str, overrides: Sequence[str]) -> list[str]:
    """What is wrong with a run, one line a field; nothing is started. Raises UsageError without verl."""
    _need("verl")
    from train.verl_check import compose_recipe, problems

    try:
        return problems(compose_recipe(recipe, overrides))
    except UsageError as error:
        return [str(error)]


def plan(recipe: str, overrides: Sequence[str]) -> str:
    """What would be started, for people."""
    from train.verl_check import compose_recipe

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
    return {"VERL_USE_EXTERNAL_MODULES": "train.verl_plugin"}


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


def _quoted(value: str) -> str:
    """A value in hydra's grammar: in quotes, for suites have options."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
