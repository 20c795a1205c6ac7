"""What counts as a wall, and which walls an attempt ends at."""

import pytest

from environments.browser_use.walls import Look, Walls, wall


def look(title: str = "Shop", text: str = "Welcome", **fields: object) -> Look:
    plain: Look = {
        "title": title, "text": text, "length": len(text), "captcha": False, "password": False,
    }  # fmt: skip
    return {**plain, **fields}  # type: ignore[typeddict-item]


@pytest.mark.parametrize(
    ("url", "shown", "reason"),
    [
        ("https://a.org/", look(), ""),
        ("https://a.org/", look(captcha=True), "captcha"),
        ("https://a.org/form", look(captcha=True, length=5000), ""),
        ("https://a.org/", look("Just a moment..."), "bot check: Just a moment..."),
        ("https://a.org/", look("Access Denied"), "bot check: Access Denied"),
        ("https://a.org/", look("Access denied: a history of locks", length=9000), ""),
        ("https://a.org/", look("安全验证"), "bot check: 安全验证"),
        ("https://www.google.com/sorry/index?continue=x", look(), "bot check"),
        ("https://a.org/", look(text="Please confirm you are not a robot."), "bot check"),
        ("https://a.org/", look(text="请完成验证后继续"), "bot check"),
        ("https://a.org/login?next=/x", look(password=True), "login"),
        ("https://a.org/register", look(password=True), ""),
        ("https://a.org/account", look("Log in to continue", password=True), "login"),
        ("https://a.org/x", look("请验证您是真人 - 远望"), "bot check: 请验证您是真人 - 远望"),
        ("https://a.org/login", look(), ""),
    ],
)
def test_walls(url: str, shown: Look, reason: str) -> None:
    assert wall(url, shown) == reason


def test_a_wall_that_was_passed_blocks_nobody() -> None:
    walls = Walls("https://a.org/", "Find it")
    walls.see("https://a.org/", look(captcha=True))
    assert walls.blocked == "captcha at a.org"
    walls.see("https://a.org/", look())
    assert walls.blocked == ""


def test_turning_away_from_the_tasks_own_site_is_still_blocked() -> None:
    walls = Walls("https://a.org/", "Find it")
    walls.see("https://a.org/", look(captcha=True))
    walls.see("https://b.org/", look())
    assert walls.blocked == "captcha at a.org"


def test_a_wall_elsewhere_blocks_only_who_ends_there() -> None:
    walls = Walls("https://a.org/", "Find it")
    walls.see("https://b.org/", look(captcha=True))
    assert walls.blocked == "captcha at b.org"
    walls.see("https://a.org/", look())
    assert walls.blocked == ""


def test_a_task_that_is_about_logging_in_expects_a_login() -> None:
    for prompt, reason in [("Log in as ann", ""), ("请登录", ""), ("Find it", "login at a.org")]:
        walls = Walls("https://a.org/", prompt)
        walls.see("https://a.org/login", look(password=True))
        assert walls.blocked == reason
