"""Pages that keep agents out: captchas, bot checks, refusals, and logins that a task knows nothing of.

A page is a wall by what it shows, never by what it loads: many sites carry an invisible captcha.
"""

from __future__ import annotations

import re
from typing import TypedDict
from urllib.parse import urlsplit

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
LOGIN_PATH = re.compile(
    r"/(?:log[-_]?in|sign[-_]?in|authwall|auth|sso|session/new)\b", re.IGNORECASE
)
LOGIN_TITLE = re.compile(r"log[ -]?in\b|sign[ -]?in\b|登录", re.IGNORECASE)
LOGIN_WANTED = re.compile(
    r"log(?:ged)?[ -]?in\b|sign[ -]?(?:in|up)\b|regist|password|登录|注册|密码", re.IGNORECASE
)


def wall(url: str, look: Look) -> str:
    """Why a page is a wall; empty when it is none."""
    short = look["length"] < SHORT
    if look["captcha"] and short:
        return "captcha"
    if TITLES.search(look["title"].strip()) and short:
        return f"bot check: {look['title'].strip()[:100]}"
    if urlsplit(url).path.startswith("/sorry/") or (short and SENTENCES.search(look["text"])):
        return "bot check"
    if (
        look["password"]
        and short
        and (LOGIN_PATH.search(urlsplit(url).path) or LOGIN_TITLE.search(look["title"]))
    ):
        return "login"
    return ""


class Walls:
    """Which hosts kept the agent out when it last looked."""

    def __init__(self, start: str, prompt: str) -> None:
        """`start` is the page that the task is about; a `prompt` that speaks of a login expects one."""
        self._start = _host(start)
        self._login_expected = LOGIN_WANTED.search(prompt) is not None
        self._standing: dict[str, str] = {}
        self._last = ""

    def see(self, url: str, look: Look) -> None:
        """Note what a page shows; a page behind the wall takes it away."""
        reason = wall(url, look)
        if reason == "login" and self._login_expected:
            reason = ""
        self._last = _host(url)
        self._standing[self._last] = reason

    @property
    def blocked(self) -> str:
        """Why the agent got no further: at the page that it ended on, or on the task's own site."""
        for host in (self._last, self._start):
            if reason := self._standing.get(host, ""):
                return f"{reason} at {host}"
        return ""


def _host(url: str) -> str:
    return urlsplit(url).netloc
