"""YAML that is more, or other, than it seems."""

import os

import pytest

from environments.claw.yaml_file import read_yaml

BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


def test_aliases_are_read(tmp_path):
    path = tmp_path / "task.yaml"
    path.write_text("a: &a {x: [1, 2]}\nb: *a\nc: {<<: *a, y: 3}\n")
    assert read_yaml(path) == {"a": {"x": [1, 2]}, "b": {"x": [1, 2]}, "c": {"x": [1, 2], "y": 3}}


@pytest.mark.parametrize("text", [BOMB, "a: &a [*a]\n", "a: &a {b: {c: *a}}\n"])
def test_aliases_that_stand_for_too_much_are_refused(text, tmp_path):
    path = tmp_path / "task.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match="its aliases stand for more than 1,000,000 values"):
        read_yaml(path)


def test_what_would_be_read_for_ever_is_refused(tmp_path):
    os.mkfifo(tmp_path / "task.yaml")
    with pytest.raises(ValueError, match="no regular file"):
        read_yaml(tmp_path / "task.yaml")
