from collections import Counter

import pytest

from rollout.errors import UsageError
from train.mix import HarnessSpec, draw, format_mix, parse_mix, with_eval_only


def test_names_surfaces_presets_and_weights() -> None:
    assert parse_mix("react:0.7,codex:plain/mcp:0.3,kimi_code:fast") == (
        HarnessSpec("react", "", 0.7),
        HarnessSpec("codex:plain", "mcp", 0.3),
        HarnessSpec("kimi_code:fast", "", 1.0),
    )
    assert parse_mix("react,react/mcp", tools="native") == (
        HarnessSpec("react", "native"),
        HarnessSpec("react", "mcp"),
    )


@pytest.mark.parametrize("text", ["react", "react:0.7,codex:plain/mcp:0.3,kimi_code:fast"])
def test_what_is_written_is_read_again(text: str) -> None:
    assert format_mix(parse_mix(text)) == text


@pytest.mark.parametrize("text", ["", "react:0", "react:-1", "react,react", "react:inf", ":1"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--harness"):
        parse_mix(text)


def test_each_gets_its_share() -> None:
    mix = parse_mix("a:0.7,b:0.3")
    drawn = Counter(one.name for step in range(200) for one in draw(mix, 8, str(step)))
    assert drawn["a"] / sum(drawn.values()) == pytest.approx(0.7, abs=0.03)
    assert draw(mix, 8, "x") == draw(mix, 8, "x")
    assert len(draw(mix, 10, "x")) == 10


def test_harnesses_of_evaluation_are_never_trained_in() -> None:
    mix = with_eval_only(parse_mix("a"), parse_mix("a,b"))
    assert [(one.name, one.weight) for one in mix] == [("a", 1.0), ("b", 0.0)]
    assert {one.name for one in draw(mix, 9, "")} == {"a"}
