"""A verl run's config, composed by verl's own hydra defaults and checked field by field.

verl merges a recipe without looking at its keys, so a misspelt one is silently without effect. Here each
field must be one that verl's defaults have, or one of the dataclass that its section names (`_target_`),
and each value must be of that field's type. Needs verl, but neither a GPU nor a model of a hub.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from hydra import compose, initialize_config_dir, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.utils import get_class
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from rollout.errors import RolloutError, UsageError
from rollout.text import one_line
from suites.command.options import select
from suites.command.setup import make_harness
from train.mix import parse_mix
from train.verl.launch import RECIPES
from train.verl.modes import AGGREGATIONS, MANAGER, MODES
from train.verl.settings import Settings

__all__ = ["compose_recipe", "problems"]

FREE = (
    "anyharness",
    "ray_kwargs.ray_init",
    "data.apply_chat_template_kwargs",
    "data.mm_processor_kwargs",
    "trainer.v1.sampler.sampler_kwargs",
)
"""Sections that verl passes on, or that are checked in another way."""

NEEDED = ("suite", "harness")
"""What no recipe can know."""


def compose_recipe(recipe: str, overrides: Sequence[str]) -> DictConfig:
    """The whole config of a recipe. Raises UsageError for one that does not compose."""
    known = sorted(path.stem for path in RECIPES.glob("*.yaml"))
    if recipe not in known:
        raise UsageError(f"--recipe {recipe!r}: known: {', '.join(known)}")
    GlobalHydra.instance().clear()
    path = "hydra.searchpath=[pkg://verl.trainer.config]"
    try:
        with initialize_config_dir(str(RECIPES), version_base=None):
            return compose(recipe, [path, *overrides])
    except (HydraException, OmegaConfBaseException) as error:
        raise UsageError(f"recipe {recipe}: {one_line(str(error))}") from error


@cache
def _defaults() -> dict[str, Any]:
    """verl's own, where no recipe has touched them."""
    GlobalHydra.instance().clear()
    with initialize_config_module("verl.trainer.config", version_base=None):
        told = OmegaConf.to_container(compose("ppo_trainer"), resolve=True)
    assert isinstance(told, dict)
    return {str(name): value for name, value in told.items()}


def problems(config: DictConfig) -> list[str]:
    """What is wrong, one line a field."""
    absent = [name for name in NEEDED if OmegaConf.is_missing(config.anyharness, name)]
    if absent:
        return [f"anyharness.{name}: is missing (--{name})" for name in absent]
    try:
        told = OmegaConf.to_container(config, resolve=True)
    except OmegaConfBaseException as error:
        return [one_line(str(error))]
    assert isinstance(told, dict)
    checks: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: _section("", told, _defaults()),
        lambda: _ours(config, told),
        lambda: _verls(config),
    )
    # Each takes for granted that the one before found nothing.
    return next((found for check in checks if (found := list(check()))), [])


def _section(path: str, told: dict[str, Any], usual: dict[str, Any] | None) -> Iterator[str]:
    """The fields of one section, and of those within."""
    usual = usual or {}
    hints = _hints(told.get("_target_"))
    for name, value in told.items():
        where = f"{path}.{name}" if path else name
        if where in FREE or name == "_target_":
            continue
        if name not in usual and name not in hints:
            if not _is_free(path, usual):
                yield f"{where}: no such field{_meant(name, {*usual, *hints})}"
        elif isinstance(value, dict):
            within = usual.get(name)
            yield from _section(where, value, within if isinstance(within, dict) else None)
        elif isinstance(usual.get(name), dict) and usual[name]:
            yield f"{where}: is a section of fields, not {value!r}"
        elif value != usual.get(name):
            yield from _value(where, value, hints.get(name), usual.get(name))


def _is_free(path: str, usual: dict[str, Any]) -> bool:
    """Whether a section holds whatever one likes: verl's defaults leave it empty."""
    return bool(path) and not usual


def _hints(target: str | None) -> dict[str, Any]:
    """Types of the fields of the dataclass that a section names."""
    if not target:
        return {}
    cls = get_class(target)
    return get_type_hints(cls) if dataclasses.is_dataclass(cls) else {}


def _value(where: str, value: Any, hint: Any, usual: Any) -> Iterator[str]:
    if hint is None:
        # A plain section: the default tells the type, where there is one.
        hint = float | int if isinstance(usual, float) else type(usual)
        if usual is None or isinstance(usual, list | dict):
            return
    try:
        config = (
            None if dataclasses.is_dataclass(hint) else ConfigDict(arbitrary_types_allowed=True)
        )
        TypeAdapter(hint, config=config).validate_python(value, strict=True)
    except (PydanticSchemaGenerationError, PydanticUserError):
        return
    except ValidationError as error:
        what = error.errors()[0]["msg"]
        yield f"{where}: {what}, not {value!r}"


def _meant(name: str, known: set[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _ours(config: DictConfig, told: dict[str, Any]) -> Iterator[str]:
    """What must hold for our own parts to work."""
    try:
        settings = Settings.read(told["anyharness"])
        for name, mix in (("harness", settings.harness), ("val_harness", settings.val_harness)):
            _mix(name, mix or settings.harness)
        for suite in (settings.suite, settings.val_suite):
            source = settings.source(suite)
            select(source.suite.tasks(source.options.data), source.options.tasks)
        _model(config.actor_rollout_ref.model.path)
    except RolloutError as error:
        yield one_line(str(error))
        return
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    sampler, mode = config.trainer.v1.sampler, config.trainer.v1.trainer_mode
    rules = {
        "trainer.use_v1": (config.trainer.use_v1, (True,)),
        "trainer.v1.trainer_mode": (mode, tuple(MODES)),
        "actor_rollout_ref.rollout.agent.agent_loop_manager_class": (
            rollout.agent.get("agent_loop_manager_class"),
            (MANAGER,),
        ),
        "actor_rollout_ref.rollout.calculate_log_probs": (rollout.calculate_log_probs, (True,)),
        "algorithm.adv_estimator": (config.algorithm.adv_estimator, ("grpo",)),
        "algorithm.use_kl_in_reward": (config.algorithm.use_kl_in_reward, (False,)),
    }
    if settings.episode_weights:
        rules["actor_rollout_ref.actor.loss_agg_mode"] = (actor.loss_agg_mode, AGGREGATIONS)
    if sampler.sync_refill_failed_groups and MODES.get(mode) == "sync":
        rules["data.gen_batch_size"] = (config.data.gen_batch_size, (1,))
    for where, (value, allowed) in rules.items():
        if value not in allowed:
            yield f"{where}: must be {' or '.join(map(str, allowed))}, not {value}"
    if config.data.train_batch_size % actor.ppo_mini_batch_size:
        yield (
            "actor_rollout_ref.actor.ppo_mini_batch_size: must divide data.train_batch_size"
            f" ({config.data.train_batch_size}), not be {actor.ppo_mini_batch_size}"
        )
    if rollout.n < 2:
        yield f"actor_rollout_ref.rollout.n: a group needs 2 episodes or more, not {rollout.n}"


def _model(path: str) -> None:
    """Raise UsageError for a folder without a checkpoint. Names of a hub are not looked up."""
    folder = Path(path).expanduser()
    if (folder.is_absolute() or path.startswith(".")) and not (folder / "config.json").is_file():
        raise UsageError(f"actor_rollout_ref.model.path: {path}: no config.json there (--model)")


def _mix(field: str, text: str) -> None:
    """Raise UsageError for a harness or a tool surface that does not exist."""
    for spec in parse_mix(text):
        surfaces = make_harness(spec.harness).surfaces
        if spec.tools and spec.tools not in surfaces:
            raise UsageError(
                f"anyharness.{field}: {spec.name}: {spec.harness} takes {', '.join(surfaces)}"
            )


def _verls(config: DictConfig) -> Iterator[str]:
    """What verl's own dataclasses and `validate_config` say, as far as they need no model."""
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    for where in ("actor_rollout_ref.actor", "actor_rollout_ref.rollout", "algorithm"):
        try:
            omega_conf_to_dataclass(OmegaConf.select(config, where))
        except Exception as error:
            yield f"{where}: {one_line(str(error))}"
            return
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            validate_config(config, need_reference_policy(config), need_critic(config))
    except Exception as error:
        yield one_line(f"verl: {error}")
