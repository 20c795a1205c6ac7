"""What an answer says, in the ways in which people write it."""

import pytest

from rollout.answers import declined, numbers, said, said_any


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("It costs $1,250.50.", [1250.5]),
        ("1.250 stars", [1.25]),
        ("1250,50 €", [1250.5]),
        ("共 ¥1,428.00 元", [1428.0]),
        ("２０３０年", [2030.0]),
        ("AW 538, $73.00", [538.0, 73.0]),
        ("2, 3 and 45", [2.0, 3.0, 45.0]),
        ("none", []),
    ],
)
def test_numbers(answer: str, found: list[float]) -> None:
    assert numbers(answer) == found


def test_whole_numbers_and_plain_words() -> None:
    assert said("The total is **$48.00**.", "48")
    assert not said("The total is 148.", "48")
    assert said("航班 CQ 222", "cq 222")
    assert said_any("six weeks", "6 weeks", "six weeks")
    assert not said("six weeks", "six weeks", "Copier")


@pytest.mark.parametrize(
    "answer",
    [
        "[INFEASIBLE] x",
        "There is no zone E.",
        "It isn’t sold in blue.",
        "没有蓝色的。",
        "I can not do it",
    ],
)
def test_declined(answer: str) -> None:
    assert declined(answer)


@pytest.mark.parametrize(
    "answer", ["The kettle is in the cart.", "Done: nothing else changed.", "已放入购物车。"]
)
def test_not_declined(answer: str) -> None:
    assert not declined(answer)
