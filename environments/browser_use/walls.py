"""Pages that keep agents out: captchas, bot checks, refusals, and logins that a task knows nothing of.

A page is a wall by what it shows, never by what it loads: many sites carry an invisible captcha. An
attempt that a wall ended has no grade, so an agent must not be able to bring one up at will.
"""

from __future__ import annotations

import re
from typing import TypedDict
from urllib.parse import unquote_plus, urlsplit

__all__ = ["PROBE", "Look", "Walls", "wall"]

SHORT = 1500
"""Characters of text: a page with more than that and a captcha in it is a form, not a wall."""

PROBE = """() => {
  const shown = selector => [...document.querySelectorAll(selector)].some(element => {
    const box = element.getBoundingClientRect();
    return box.width > 20 && box.height > 20 && getComputedStyle(element).visibility === 'visible';
  });
  const text = document.body?.innerText ?? '';
  return {
    title: document.title,
    text: text.slice(0, 2000),
    length: text.length,
    captcha: shown(`[data-sitekey]:not([data-size=invisible]),
      .g-recaptcha:not([data-size=invisible]), .h-captcha:not([data-size=invisible]), .cf-turnstile,
      #px-captcha, #challenge-form, #challenge-running,
      iframe[src*="captcha-delivery.com"], iframe[src*="challenges.cloudflare.com"],
      iframe[src*="hcaptcha.com"]:not([src*="size=invisible"]), iframe[title*="captcha challenge" i],
      iframe[src*="recaptcha/"]:not([src*="size=invisible"])`),
    password: shown('input[type=password]'),
  };
}"""
"""What is asked of the main frame; see `Look`."""


class Look(TypedDict):
    """What a page shows, as far as walls go."""

    title: str
    text: str
    length: int
    captcha: bool
    password: bool


TITLES = re.compile(
    r"^just a moment|^attention required|access (?:to this page has been )?denied|^robot or human"
    r"|are you (?:a robot|human)|verify (?:that )?you are (?:a )?human|pardon our interruption"
    r"|security (?:check|verification)|captcha|^(?:403|429)\b|^too many requests"
    r"|^请完成验证|安全验证|人机验证|验证您?是真人",
    re.IGNORECASE,
)
SENTENCES = re.compile(
    r"unusual traffic from your computer network|verify(?:ing)? (?:that )?you are (?:a )?human"
    r"|confirm (?:that )?you(?: are|'re|’re) (?:not a robot|human)|prove (?:that )?you are not a robot"
    r"|checking (?:if the site connection is secure|your browser before)"
    r"|请证明您不是机器人|请完成(?:安全)?验证|验证您?是真人",
    re.IGNORECASE,
)
GOOGLE = re.compile(r"(?:^|\.)google\.[a-z.]+$")
LOGIN_PATH = re.compile(
    r"/(?:log[-_]?in|sign[-_]?in|authwall|auth|sso|session/new)\b", re.IGNORECASE
)
LOGIN_TITLE = re.compile(r"log[ -]?in\b|sign[ -]?in\b|登录", re.IGNORECASE)
LOGIN_WANTED = re.compile(
    r"log(?:ged)?[ -]?in\b|sign[ -]?(?:in|up)\b|regist|password|登录|注册|密码", re.IGNORECASE
)


def wall(url: str, look: Look, spoken: str = "") -> str:
    """Why a page is a wall; empty when it is none.

    Words that are in `spoken` (lower case) tell nothing: the page repeats what it was asked for.
    """
    short = look["length"] < SHORT
    parts, title = urlsplit(url), look["title"].strip()
    if look["captcha"] and short:
        return "captcha"
    if short and _tells(TITLES, title, spoken):
        return f"bot check: {title[:100]}"
    sorry = parts.path.startswith("/sorry/") and GOOGLE.search(parts.hostname or "")
    if sorry or (short and _tells(SENTENCES, look["text"], spoken)):
        return "bot check"
    if (
        look["password"]
        and short
        and (LOGIN_PATH.search(parts.path) or LOGIN_TITLE.search(look["title"]))
    ):
        return "login"
    return ""


class Walls:
    """Whether the task's own site kept the agent out when it last looked at it.

    Pages elsewhere never count: the agent chose to go there. Nor do those without a web host (data:,
    about:, blob:): it can write them itself.
    """

    def __init__(self, site: str, prompt: str, *, ours: bool = False) -> None:
        """`site` is a page of the task's site; a `prompt` that speaks of a login expects one.

        On a site of `ours` nothing refuses by accident: only a wall that the task starts at counts.
        """
        self._hosts = {_host(site)} - {""}
        self._login_expected = LOGIN_WANTED.search(prompt) is not None
        self._ours = ours
        self._first = ""
        self._spoken = ""
        self.blocked = ""
        """Why the agent got no further on the task's own site; empty when it did."""

    def arrive(self, url: str, look: Look) -> None:
        """Note where the start page led, before the agent did anything: that is the task's site too."""
        if self._hosts and not self._ours:
            self._hosts |= {_host(url)} - {""}
        if self._own(url):
            self._first = wall(url, look)
        self.see(url, look)

    def hear(self, text: str) -> None:
        """Note what the agent types or opens."""
        self._spoken += _plain(unquote_plus(text))  # with nothing between: words may come in parts

    def see(self, url: str, look: Look) -> None:
        """Note what a page shows; a page behind the wall takes it away."""
        if self._own(url):
            reason = wall(url, look, self._spoken + _plain(unquote_plus(urlsplit(url).query)))
            if not reason:
                self._first = ""
            self.blocked = f"{reason} at {_host(url)}" if self._counts(reason) else ""

    def _counts(self, reason: str) -> bool:
        """A login is a click away on most sites: one counts while nothing else of the site was seen."""
        if not reason or (reason == "login" and self._login_expected):
            return False
        return reason == self._first or not (self._ours or reason == "login")

    def _own(self, url: str) -> bool:
        """Whether a page is on the task's site: on its host, or on one above or below that."""
        host = _host(url)
        return bool(host) and any(
            f".{host}".endswith(f".{own}") or f".{own}".endswith(f".{host}") for own in self._hosts
        )


def _tells(pattern: re.Pattern[str], text: str, spoken: str) -> bool:
    return any(match[0] not in spoken for match in pattern.finditer(_plain(text)))


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.lower())


def _host(url: str) -> str:
    """Host and port of a web page, without `www.`; empty for what has none, or is no web page."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ""
    return parts.hostname.removeprefix("www.") + port
