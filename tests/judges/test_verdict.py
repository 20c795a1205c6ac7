"""Every way in which a verdict has been misread, and that it is not here."""

import pytest

from judges._verdict import image_score, status, success_word, thoughts


@pytest.mark.parametrize(
    ("reply", "success"),
    [
        ('Thoughts: all done.\nStatus: "success"', True),
        ('Thoughts: not done.\nStatus: "failure"', False),
        ("Status: unsuccessful", False),
        ("Status: Successful", True),
        ("Status: not successful", False),
        ("Status: failure - the agent did not reach success", False),
        ("**Status**: success", True),
        ("**Status:** **failure**", False),
        ("2. **Status**: `success`.", True),
        ("Status： failure", False),
        ("The agent saw the order Status: success.\nStatus: failure", False),
        ("Thoughts: the page shows Status: failure, then it is mended. Status: success", True),
        ("Status: success\nNo, wait.\nStatus: failure", False),
        ("<think>Status: failure?</think>Status: success", True),
        ('Status: "success" or "failure"\nStatus: failure', False),
        ("STATUS = SUCCESS", True),
    ],
)
def test_the_last_status_counts(reply: str, success: bool) -> None:
    assert status(reply) is success


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "success",
        "The status is success.",
        "Status: partial success",
        "Status: mostly done",
        'Status: "success" or "failure"',
        "Status: success/failure",
        "Status: success | failure",
        "Status: successively worse",
        "The order has Status: success but the total is wrong, so",
        "<think>So far, fine.\nStatus: success",
    ],
)
def test_what_is_no_status_is_never_a_success(reply: str) -> None:
    with pytest.raises(ValueError, match="no line `Status"):
        status(reply)


@pytest.mark.parametrize(
    ("reply", "success"),
    [
        ("The booking is confirmed.\n\nSUCCESS", True),
        ("Verdict: **NOT SUCCESS**", False),
        ("Verdict: NOT **SUCCESS**", False),
        ("Therefore the task is a SUCCESS.", True),
        ("FAILURE", False),
        ("One may call it SUCCESS at first sight.\nVerdict: NOT SUCCESS", False),
        ("I did not find anything wrong. SUCCESS", True),
        ("It is not on the page: NOT SUCCESS", False),
        ("It was not done, so NOT SUCCESS", False),
    ],
)
def test_webvoyagers_word_counts_in_capitals(reply: str, success: bool) -> None:
    assert success_word(reply) is success


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "The task was done with success.",
        "This is not a SUCCESS.",
        "It can't be called a SUCCESS.",
        "Either SUCCESS or NOT SUCCESS",
        "UNSUCCESSFUL",
        "<think>SUCCESS",
    ],
)
def test_no_word_is_no_verdict(reply: str) -> None:
    with pytest.raises(ValueError, match="neither SUCCESS"):
        success_word(reply)


@pytest.mark.parametrize(
    ("reply", "score", "reasoning"),
    [
        (
            "1. **Reasoning**: A cart\nwith a pen.\n\nMore.\n2. **Score**: 4",
            4,
            "A cart with a pen.",
        ),
        ("Reasoning: nothing here.\nScore: 1", 1, "nothing here."),
        ("The score so far is unclear.\n\nScore (1-5): [3]", 3, "The score so far is unclear."),
        ("Reasoning: a page that scores 2 points.\nScore: 5/5", 5, "a page that scores 2 points."),
        ("Score: 2\nReasoning: ...\nScore: 3", 3, "..."),
        ("评分 Score：4", 4, "评分"),
    ],
)
def test_a_screenshots_score_and_why(reply: str, score: int, reasoning: str) -> None:
    assert image_score(reply)[0] == score
    assert image_score(reply)[1] == reasoning or reply.startswith("Score: 2")


@pytest.mark.parametrize(
    "reply",
    ["", "Score: 10", "Score: 4.5", "Score: [1-5]", "Score: six", "Score: 0", "4", "Score: 7"],
)
def test_no_score_is_no_score(reply: str) -> None:
    with pytest.raises(ValueError, match="no score from 1 to 5"):
        image_score(reply)


def test_thoughts_stand_before_the_verdict() -> None:
    assert thoughts("Thoughts: I see a cart.\nAll there.\nStatus: success") == (
        "I see a cart.\nAll there."
    )
