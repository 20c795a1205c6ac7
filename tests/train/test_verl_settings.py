"""The key `anyharness` of a verl config. Needs no verl."""

from collections import Counter

import pytest
import yaml

from rollout.errors import UsageError
from train.verl import launch as verl_launch
from train.verl.settings import Settings

GIVEN = {"suite": "support.toy_suite", "harness": "react"}


def test_the_recipe_lists_every_setting() -> None:
    told = yaml.safe_load((verl_launch.RECIPES / "anyharness.yaml").read_text())["anyharness"]
    assert set(told) == set(Settings.__struct_fields__)
    settings = Settings.read({**told, **GIVEN, "val_suite": ""})
    assert settings.credit.unclean == "drop"
    assert settings.advantage.estimator == "dr_grpo"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("unclean", "maybe", "anyharness.unclean"),
        ("uncleen", "drop", "uncleen"),
        ("concurrency", 0, "concurrency must be 1 or more"),
        ("gamma", 1.5, "gamma must be above 0 and at most 1"),
        ("gamma", 0.9, "gamma below 1 needs estimator: dr_grpo"),
        ("gigpo", -1, "gigpo must not be negative"),
        ("options", "'open", "No closing quotation"),
        ("options", "--tmeout 3", "--tmeout"),
        ("suite", "nope", "unknown suite 'nope'"),
    ],
)
def test_a_wrong_setting_is_named(field: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Settings.read({**GIVEN, field: value}).source()


def test_sampling_and_limits_reach_the_options_of_the_suite() -> None:
    settings = Settings.read({**GIVEN, "max_tokens": 99, "options": "--timeout 600"})
    options = settings.source("support.toy_suite --tasks 2", temperature=0.0).options
    assert (options.max_tokens, options.timeout, options.tasks) == (99, 600, "2")
    assert options.sampling == {"temperature": 0.0, "top_p": 1.0}


def test_a_missing_verl_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="make verl-cpu"):
        verl_launch.check("claw", [])


def test_options_become_overrides_in_hydras_grammar() -> None:
    told = verl_launch.overrides({"suite": 'a --b "c"', "model": "m", "batch": None}, ["x=1"])
    assert told == [
        'anyharness.suite="a --b \\"c\\""',
        'actor_rollout_ref.model.path="m"',
        "x=1",
    ]


def test_an_option_that_verl_has_no_equal_of_is_refused_with_what_to_write() -> None:
    for option in ("mini_batches", "concurrency", "sandbox", "engine"):
        with pytest.raises(
            UsageError, match=f"--{option.replace('_', '-')}: with --trainer verl, write"
        ):
            verl_launch.overrides({option: 3})


def test_a_group_has_one_harness_drawn_by_weight() -> None:
    settings = Settings.read({**GIVEN, "harness": "react:0.75,react/mcp:0.25"})
    rows = [{"harness": "", "index": index} for index in range(400)]
    drawn = Counter(settings.drawn(row, step=3).name for row in rows)
    assert drawn["react"] == pytest.approx(300, abs=40)
    assert [settings.drawn(row, 3) for row in rows] == [settings.drawn(row, 3) for row in rows]
    assert [settings.drawn(row, 3) for row in rows] != [settings.drawn(row, 4) for row in rows]
    fixed = {"harness": "codex:fast/skill", "index": 0}
    assert settings.drawn(fixed, 3).options == {"harness": "codex:fast", "tools": "skill"}
