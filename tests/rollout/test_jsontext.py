"""JSON as agents, harnesses and servers write it: taken at the door, strict behind it."""

import json

import msgspec
import pytest

from rollout.jsontext import plain, read_json, repaired


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": [1, "x"]}', {"a": [1, "x"]}),
        (json.dumps({"cut \ud83d": "\ude00"}).encode(), {"cut \ufffd": "\ufffd"}),
        ('"\ud83d"', "\ufffd"),
        (b'["\\ud83d\\ude00"]', ["\U0001f600"]),
        (b'{"a": NaN, "b": -Infinity, "c": 1e999}', {"a": None, "b": None, "c": None}),
        (f'{{"a": {10**40}}}', {"a": 10**40}),
        (b"[1" + b"0" * 5000 + b"]", [None]),
    ],
)
def test_what_others_write_is_taken(text, value):
    assert read_json(text) == value
    assert msgspec.json.decode(repaired(text)) == value


@pytest.mark.parametrize("text", [b"", b"{", b'{"a": "\xff"}', b"[" * 100_000, "[" * 100_000])
def test_what_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 (the words are the parsers' own)
        read_json(text)


def test_types_hold_in_repaired_text_too():
    assert read_json(b'{"a": NaN}', dict[str, None]) == {"a": None}
    with pytest.raises(ValueError, match=r"Expected `object`"):
        read_json(b'"\\ud83d"', dict[str, int])


def test_values_become_strict_json():
    assert plain({"half \ud83d": (10**30, float("nan"))}) == (
        '{"half \ufffd":[1000000000000000000000000000000,null]}'.encode()
    )
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        plain(deep)
