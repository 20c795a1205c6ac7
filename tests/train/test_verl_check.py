"""`--check`: recipes against verl's own config classes, and each wrong field by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.quiet import verl_imports

from rollout.errors import UsageError

pytestmark = pytest.mark.verl
pytest.importorskip("verl", reason="needs verl (make verl-cpu)")

with verl_imports():
    from verl.trainer.ppo.v1 import get_trainer_cls

    from train.verl import launch as verl_launch
    from train.verl import plugin
    from train.verl.check import compose_recipe
    from train.verl.modes import MANAGER

GIVEN = verl_launch.overrides(
    {"suite": "claweval --tasks 4", "harness": "react", "model": "some/model"}, ["data.seed=1"]
)
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
MODE = "trainer.v1.trainer_mode"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with verl_imports():
        yield


@pytest.mark.parametrize("recipe", ["anyharness", "browser_use", "claw", "computer_use"])
def test_a_recipe_passes(recipe: str) -> None:
    assert verl_launch.check(recipe, GIVEN) == []


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "+data.tran_batch_size=3",
            "data.tran_batch_size: no such field; did you mean train_batch",
        ),
        ("data.tran_batch_size=3", "data.tran_batch_size"),
        (f"+{ROLLOUT}.tensor_parallel=3", f"{ROLLOUT}.tensor_parallel: no such field"),
        (f"+{ROLLOUT}.val_kwargs.temprature=3", f"{ROLLOUT}.val_kwargs.temprature: no such field"),
        (f"+{ACTOR}.optim.learning_rate=3", f"{ACTOR}.optim.learning_rate: no such field"),
        (f"{ROLLOUT}.n=many", f"{ROLLOUT}.n: Input should be a valid integer, not 'many'"),
        (f"{ACTOR}.use_dynamic_bsz=3", f"{ACTOR}.use_dynamic_bsz: Input should be a valid bool"),
        ("trainer.nnodes=two", "trainer.nnodes: Input should be a valid integer"),
        (f"{ACTOR}.clip_ratio_high=wide", f"{ACTOR}.clip_ratio_high: Input should be"),
        (f"{ROLLOUT}.n=1", f"{ROLLOUT}.n: a group needs 2 episodes"),
        (f"{ROLLOUT}.calculate_log_probs=false", f"{ROLLOUT}.calculate_log_probs: must be True"),
        (f"{ACTOR}.loss_agg_mode=token-sum", f"{ACTOR}.loss_agg_mode: must be token-mean or seq"),
        (f"{MODE}=sync", f"{MODE}: must be anyharness_sync or"),
        ("data.gen_batch_size=4", "data.gen_batch_size: must be 1"),
        ("algorithm.use_kl_in_reward=true", "algorithm.use_kl_in_reward: must be False"),
        ("algorithm.adv_estimator=gae", "algorithm.adv_estimator: must be grpo"),
        (f"{ACTOR}.ppo_mini_batch_size=9", "ppo_mini_batch_size"),
        ("anyharness.unclean=maybe", "anyharness.unclean"),
        ("+anyharness.uncleen=drop", "uncleen"),
        ("anyharness.harness=reakt", "unknown harness 'reakt'"),
        ("anyharness.val_harness='react,codex/native'", "anyharness.val_harness: codex/native"),
        ("anyharness.suite=klaweval", "unknown suite 'klaweval'"),
        ("anyharness.options='--timeout soon'", "--timeout"),
        (f"{ACTOR}.optim=3", f"{ACTOR}.optim: is a section"),
    ],
)
def test_a_wrong_field_is_named(override: str, words: str) -> None:
    found = verl_launch.check("claw", [*GIVEN, override])
    assert any(words in problem for problem in found), found
    assert all("\n" not in problem for problem in found)


def test_every_option_of_the_command_line_is_a_field_of_verls(tmp_path: Path) -> None:
    given = {
        "suite": "claweval --tasks 4",
        "harness": "react:0.7,react/mcp:0.3",
        "eval": "claweval --tasks 2",
        "eval_harness": "react,codex",
        "eval_every": 5,
        "model": "some/model",
        "out": tmp_path,
        "steps": 50,
        "batch": 4,
        "group": 6,
        "learning_rate": 2e-6,
        "warmup": 3,
        "epochs": 2,
        "clip_low": 0.1,
        "clip_high": 0.3,
        "kl": 0.01,
        "aggregation": "seq-mean-token-sum",
        "estimator": "rloo",
        "temperature": 0.9,
        "max_tokens": 512,
        "engine_memory": 0.5,
        "seed": 7,
    }
    told = verl_launch.overrides(given)
    assert verl_launch.check("claw", told) == []
    config = compose_recipe("claw", told)
    assert config.data.val_files == "claweval --tasks 2 --harness 'react,codex'"
    assert (config.data.train_batch_size, config.actor_rollout_ref.rollout.n) == (4, 6)
    assert config.actor_rollout_ref.actor.kl_loss_coef == 0.01
    assert not config.anyharness.episode_weights
    assert config.anyharness.out == str(tmp_path / "rollouts")
    assert {*verl_launch.FIELDS, "out", "kl", "aggregation"} == set(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"suite": "claweval --tasks nope"}, "no task 'nope'"),
        ({"suite": "claweval --harness codex"}, "--harness is set by the trainer"),
        ({"model": "/nowhere"}, "actor_rollout_ref.model.path: /nowhere: no config.json there"),
    ],
)
def test_what_is_not_there_is_told(given: dict[str, str], words: str) -> None:
    usual = {"suite": "claweval", "harness": "react", "model": "some/model"}
    [line] = verl_launch.check("anyharness", verl_launch.overrides(usual | given))
    assert words in line


def test_a_training_is_gone_on_with_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt").write_text("10")
    with pytest.raises(UsageError, match="holds a training: add --resume"):
        verl_launch.overrides({"out": tmp_path})
    assert verl_launch.overrides({"out": tmp_path, "resume": True})


def test_what_no_recipe_can_know_is_asked_for() -> None:
    assert verl_launch.check("claw", []) == [
        "anyharness.suite: is missing (--suite)",
        "anyharness.harness: is missing (--harness)",
    ]
    assert "known: anyharness, browser_use" in verl_launch.check("paper", [])[0]


def test_the_papers_figures() -> None:
    claw, computer, browser = (
        compose_recipe(name, GIVEN) for name in ("claw", "computer_use", "browser_use")
    )
    for one in (claw, computer, browser):
        assert (one.data.train_batch_size, one.actor_rollout_ref.rollout.n) == (8, 8)
        assert (one.trainer.nnodes, one.trainer.n_gpus_per_node) == (1, 8)
    assert "--timeout 600" in computer.anyharness.options
    assert "--timeout 900" in browser.anyharness.options
    assert computer.anyharness.memory_mb == browser.anyharness.memory_mb == 2048
    workers = browser.actor_rollout_ref.rollout.agent.num_workers
    assert browser.anyharness.concurrency * workers == 48


def test_verl_finds_the_trainers_by_their_names() -> None:
    names = [f"anyharness_{mode}" for mode in ("sync", "colocate_async", "separate_async")]
    assert [get_trainer_cls(name).__module__ for name in names] == ["train.verl.trainer"] * 3
    for name in names[:2]:
        assert verl_launch.check("claw", [*GIVEN, f"{MODE}={name}"]) == []


def test_the_plan_is_a_command_of_verls_own() -> None:
    told = verl_launch.plan("claw", GIVEN)
    assert "8 tasks x 8 episodes a step, some/model" in told
    assert "verl.trainer.main_ppo --config-dir" in told
    assert f"{plugin.__name__}.{plugin.AnyHarnessManager.__name__}" == MANAGER
