"""What agents and servers say, made fit for a terminal."""

import pytest

from rollout.text import one_line, printable


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain, größer, 李, 🎉", "plain, größer, 李, 🎉"),
        ("two\n lines\tand\r\x0bmore ", "two lines and more"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07", "\ufffd[31mred\ufffd[0m \ufffd]0;title\ufffd"),
        ("C1 \x9b31m, half \ud83d, turned \u202e", "C1 \ufffd31m, half \ufffd, turned \ufffd"),
        ("", ""),
    ],
)
def test_one_line(text, line):
    assert one_line(text) == line


def test_what_is_long_loses_its_middle():
    line = one_line("start " + "x" * 50_000_000 + " end", 100)
    assert (line[:6], line[-4:]) == ("start ", " end")
    assert len(line) <= 100


def test_printable_keeps_spaces():
    assert printable("a  b\x07") == "a  b\ufffd"
