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
        ("https://a.org/sorry/index", look("Not found"), ""),
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


@pytest.mark.parametrize(
    "url",
    [
        "data:text/html,<title>captcha</title>",
        "about:blank",
        "blob:https://a.org/0f3",
        "javascript:1",
        "https://b.org/",
        "https://b.org/login",
        "https://evil-a.org/",
        "https://a.org@b.org/",
        "http://a.org:8080/",
        "http://a.org:port/",
    ],
)
def test_a_wall_that_the_agent_went_to_blocks_nobody(url: str) -> None:
    walls = Walls("https://www.a.org/", "Find it")
    walls.arrive("https://www.a.org/", look())
    walls.see(url, look("captcha", captcha=True, password=True))
    assert walls.blocked == ""


def test_no_start_page_no_wall() -> None:
    walls = Walls("about:blank", "Find it")
    walls.arrive("about:blank", look())
    walls.see("https://b.org/", look(captcha=True))
    assert walls.blocked == ""


@pytest.mark.parametrize(
    "url", ["https://a.org/x", "https://shop.a.org/", "https://checks.net/?from=a.org"]
)
def test_hosts_of_the_tasks_own_site(url: str) -> None:
    walls = Walls("https://www.a.org/", "Find it")
    walls.arrive("https://checks.net/", look())
    walls.see(url, look(captcha=True))
    assert walls.blocked.startswith("captcha at ")


def test_words_that_the_agent_gave_are_no_wall() -> None:
    for said, url, title in [
        (["captcha"], "https://a.org/find", "Captcha - search"),
        (["are you  ", "human"], "https://a.org/find", "Are you human - search"),
        (["https://a.org/no%20captcha"], "https://a.org/no%20captcha", "captcha: not found"),
        ([], "https://a.org/find?q=security+check", "security check - search"),
    ]:
        walls = Walls("https://a.org/", "Find it")
        walls.arrive("https://a.org/", look())
        for text in said:
            walls.hear(text)
        walls.see(url, look(title))
        assert walls.blocked == ""
        walls.see("https://a.org/", look("Just a moment..."))
        assert walls.blocked == "bot check: Just a moment... at a.org"


def test_a_login_blocks_only_while_nothing_else_was_seen() -> None:
    walls = Walls("https://a.org/", "Find it")
    walls.arrive("https://a.org/login", look(password=True))
    assert walls.blocked == "login at a.org"
    walls.see("https://a.org/about", look())
    walls.see("https://a.org/login", look(password=True))
    assert walls.blocked == ""


def test_on_our_sites_only_a_wall_that_the_task_starts_at_blocks() -> None:
    walls = Walls("http://gate.localhost:1/", "Find it", ours=True)
    walls.arrive("http://gate.localhost:1/", look())
    walls.see("http://gate.localhost:1/reports", look(captcha=True))
    assert walls.blocked == ""
    walls.arrive("http://gate.localhost:1/reports", look(captcha=True))
    assert walls.blocked == "captcha at gate.localhost:1"


def test_a_task_that_is_about_logging_in_expects_a_login() -> None:
    for prompt, reason in [("Log in as ann", ""), ("请登录", ""), ("Find it", "login at a.org")]:
        walls = Walls("https://a.org/", prompt)
        walls.arrive("https://a.org/login", look(password=True))
        assert walls.blocked == reason
