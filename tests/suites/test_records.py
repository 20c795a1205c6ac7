"""Task files as users have them: arrays and lines, with errors that name the line."""

import msgspec
import pytest

from rollout.errors import UsageError
from suites.command.records import find, ids_hash, read


class Row(msgspec.Struct):
    id: str
    n: int = 0


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        '[{"id": "a"},\n\n {"id": "b", "n": 2}]\n',
        '{"id": "a"}\n\n{"id": "b", "n": 2}\n',
        '\ufeff{"id": "a"}\r\n \r\n{"id": "b", "n": 2, "more": 1}',
    ],
)
def test_arrays_and_lines_are_read_with_their_lines(tmp_path, text):
    records = read(write(tmp_path / "x", text))
    assert [line for line, _ in records.lines] == [1, 3]
    assert records.typed(Row, "id") == [Row("a"), Row("b", 2)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[{"id": "a"},\n{"id": "\\x"}]', "line 2: not JSON"),
        ('[{"id": "a"}\n{"id": "b"}]', "line 2: not JSON: a comma or ] must follow"),
        ('[{"id": "a"},\n', "line 2: not JSON"),
        ('{"id": "a"}\n{"id":', "line 2: not JSON"),
        ('[{"id": "a"},\n\n\n{"id": 5}]', "line 4: Expected `str`, got `int` - at `$.id`"),
        ('{"id": "a"}\n{"n": 5}', "line 2: Object missing required field `id`"),
        ('{"id": "a"}\n[]', "line 2: Expected `object`, got `array`"),
        ('{"id": "a"}\n{"id": "a"}', "line 2: id 'a' is there twice"),
        (b'{"id": "a"}\n{"id": "\xff"}', "line 2: not UTF-8"),
        ("[]", "holds no task"),
        ("", "holds no task"),
    ],
)
def test_what_is_wrong_is_told_by_its_line(tmp_path, text, problem):
    path = write(tmp_path / "tasks.json", text)
    with pytest.raises(UsageError) as caught:
        read(path).typed(Row, "id")
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_folder_must_hold_one_such_file(tmp_path):
    with pytest.raises(UsageError, match="there: none"):
        find(tmp_path, "x*.json")
    first = write(tmp_path / "x1.json", "")
    assert find(tmp_path, "x*.json", "*1.json") == find(first, "y") == first
    write(tmp_path / "x2.json", "")
    with pytest.raises(UsageError, match=r"name one file.*x1\.json, x2\.json"):
        find(tmp_path, "x*.json")
    with pytest.raises(UsageError, match="no such file"):
        find(tmp_path / "gone", "x")


def test_the_order_of_ids_makes_no_other_set():
    assert ids_hash(["a", "b"]) == ids_hash(["b", "a"]) != ids_hash(["a", "b_110325"])
