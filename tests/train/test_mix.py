from collections import Counter

import pytest

from rollout.errors import UsageError
from train.mix import Entrant, mix_text, parse_mix, spread, with_guests


def test_names_surfaces_presets_and_weights() -> None:
    assert parse_mix("react:0.7,codex:plain/mcp:0.3,kimi_code:fast") == (
        Entrant("react", "", 0.7),
        Entrant("codex:plain", "mcp", 0.3),
        Entrant("kimi_code:fast", "", 1.0),
    )
    assert parse_mix("react,react/mcp", tools="native") == (
        Entrant("react", "native"),
        Entrant("react", "mcp"),
    )


@pytest.mark.parametrize("text", ["react", "react:0.7,codex:plain/mcp:0.3,kimi_code:fast"])
def test_what_is_written_is_read_again(text: str) -> None:
    assert mix_text(parse_mix(text)) == text


@pytest.mark.parametrize("text", ["", "react:0", "react:-1", "react,react", "react:inf", ":1"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--harness"):
        parse_mix(text)


def test_each_gets_its_share() -> None:
    mix = parse_mix("a:0.7,b:0.3")
    drawn = Counter(one.name for step in range(200) for one in spread(mix, 8, str(step)))
    assert drawn["a"] / sum(drawn.values()) == pytest.approx(0.7, abs=0.03)
    assert spread(mix, 8, "x") == spread(mix, 8, "x")
    assert len(spread(mix, 10, "x")) == 10


def test_guests_are_never_trained_in() -> None:
    mix = with_guests(parse_mix("a"), parse_mix("a,b"))
    assert [(one.name, one.weight) for one in mix] == [("a", 1.0), ("b", 0.0)]
    assert {one.name for one in spread(mix, 9, "")} == {"a"}
