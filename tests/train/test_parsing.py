import pytest

from train.parsing import parse

CALL = '<tool_call>\n{"name": "look", "arguments": {"who": "Éva"}}\n</tool_call>'


def test_a_thought_a_text_and_calls() -> None:
    said = parse(f"<think>\nhm\n</think>\n\nFirst.\n{CALL}\n{CALL}")
    assert said.thoughts == "hm"
    assert said.content == "First."
    assert said.calls == (("look", '{"who": "Éva"}'),) * 2


def test_a_thought_that_the_prompt_has_opened() -> None:
    assert parse("hm\n</think>\nYes.", thinking=True)[:2] == ("Yes.", "hm")


def test_a_thought_without_an_end_says_nothing_else() -> None:
    assert parse(f"<think>hm {CALL}") == ("", f"hm {CALL}", ())


def test_the_word_think_in_a_text_is_text() -> None:
    assert parse("I <think> so </think>").content == "I <think> so </think>"


def test_a_last_call_that_is_not_closed_counts_when_it_is_whole() -> None:
    assert parse('<tool_call>{"name": "go"}').calls == (("go", "{}"),)


@pytest.mark.parametrize(
    "inside",
    ["", "{", "[]", '{"arguments": {}}', '{"name": 1}', '{"name": "x", "arguments": "y"}'],
)
def test_what_is_no_call_stays_text(inside: str) -> None:
    text = f"<tool_call>{inside}</tool_call>"
    assert parse(text) == (text, "", ())


def test_a_bad_call_does_not_hide_a_good_one() -> None:
    said = parse(f"<tool_call>nonsense</tool_call>{CALL}")
    assert said.content == "<tool_call>nonsense</tool_call>"
    assert len(said.calls) == 1
