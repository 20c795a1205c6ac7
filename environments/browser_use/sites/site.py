"""The base of the built-in sites: one instance is one site in one episode, for one visitor.

A site keeps all that it remembers in `state`, plain JSON: a verifier reads it, and no page serves it.
Every text is there in English and in Chinese; `?lang=zh` and the switch in the header choose.
"""

from __future__ import annotations

import asyncio
import copy
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import yaml
from aiohttp import web

from environments.browser_use.sites.faults import Faults, Mischief
from environments.browser_use.sites.markup import Markup, h
from rollout.types import JsonObject

__all__ = ["MONTHS", "TODAY", "Handler", "Site", "load_data"]

TODAY = date(2026, 3, 12)
"""The day on every site."""

HERE = Path(__file__).parent

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

LANGUAGES = {"en": "English", "zh": "中文"}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
"""No page can load anything from elsewhere."""


@lru_cache
def _parsed(name: str) -> Any:
    return yaml.safe_load((HERE / "data" / f"{name}.yaml").read_text("utf-8"))


def load_data(name: str) -> Any:
    """A fresh copy of what a site has to show, from `data/NAME.yaml`."""
    return copy.deepcopy(_parsed(name))


class Site(ABC):
    """One site. Subclasses say what is on it and what its forms do."""

    name: ClassVar[str]
    """Its host is `NAME.localhost`."""
    brand: ClassVar[Mapping[str, str]]
    accent: ClassVar[str]
    """Colour of its buttons and links."""
    script: ClassVar[str] = ""
    """Its own file in `static/`."""

    def __init__(self, seed: int = 0, faults: Faults | None = None) -> None:
        self.language = "en"
        self.state: JsonObject = self.initial()
        self._mischief = Mischief(faults or Faults(), seed)
        self._notice: tuple[str, str] | None = None

    @abstractmethod
    def initial(self) -> JsonObject:
        """The state at the start."""

    @abstractmethod
    def routes(self) -> Mapping[str, Handler]:
        """`"GET /cart"` -> what answers it."""

    @abstractmethod
    def menu(self) -> Iterable[tuple[str, str]]:
        """Address and text of the links in the header."""

    def snapshot(self) -> JsonObject:
        """What became of the state, for verifiers."""
        return copy.deepcopy(self.state)

    def application(self) -> web.Application:
        """The site as it is served."""
        app = web.Application(middlewares=[self._answer], client_max_size=4 * 2**20)
        for route, handler in self.routes().items():
            method, path = route.split()
            app.router.add_route(method, path, handler)
        app.router.add_static("/static", HERE / "static")
        return app

    def say(self, en: str, zh: str) -> str:
        """The text in the language that the visitor reads."""
        return zh if self.language == "zh" else en

    def of(self, texts: Mapping[str, str]) -> str:
        """The same, of a text in the data."""
        return texts[self.language]

    def date(self, day: date | str, weekday: bool = False) -> str:
        """A date as people read it: 12 March 2026."""
        if isinstance(day, str):
            day = date.fromisoformat(day)
        if self.language == "zh":
            text = f"{day.year}年{day.month}月{day.day}日"
            return f"{text} 星期{'一二三四五六日'[day.weekday()]}" if weekday else text
        text = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
        return f"{WEEKDAYS[day.weekday()]}, {text}" if weekday else text

    def money(self, cents: int) -> str:
        """An amount: dollars in English, yuan in Chinese."""
        return f"¥{cents * 7 / 100:,.2f}" if self.language == "zh" else f"${cents / 100:,.2f}"

    def part(self, name: str, markup: Markup) -> Markup:
        """An element that a fault can leave out."""
        return Markup("") if self._mischief.is_absent(name) else markup

    def notify(self, text: str, kind: str = "good") -> None:
        """Show a message on top of the next page: `good` or `bad`."""
        self._notice = (kind, text)

    def go(self, address: str) -> web.Response:
        """Send the visitor to another page, as after every form that was accepted."""
        return web.Response(status=303, headers={"Location": address})

    def page(
        self, request: web.Request, title: str, *body: Markup, status: int = 200
    ) -> web.Response:
        """A whole page."""
        notice, self._notice = self._notice, None
        text = h(
            PAGE,
            language="zh-CN" if self.language == "zh" else "en",
            title=title,
            brand=self.of(self.brand),
            accent=self.accent,
            name=self.name,
            script=self.script and h('<script src="/static/{file}"></script>', file=self.script),
            layout=self._mischief.layout,
            shift=self._mischief.shift,
            menu=[_menu_link(request, url, label) for url, label in self.menu()],
            today=self.date(TODAY, weekday=True),
            languages=[
                h(
                    '<a href="{url}">{text}</a>',
                    url=request.rel_url.update_query(lang=key),
                    text=text,
                )
                for key, text in LANGUAGES.items()
                if key != self.language
            ],
            notice=notice
            and h(
                '<p class="notice {kind}" role="status">{text}</p>', kind=notice[0], text=notice[1]
            ),
            body=body,
            foot=self.say("All names and offers are invented.", "所有名称与内容均为虚构。"),
        )
        return web.Response(text=text, content_type="text/html", status=status)

    def framed(self, title: str, body: Markup) -> web.Response:
        """A page without header and menu, to be shown inside another."""
        return web.Response(text=h(FRAMED, title=title, body=body), content_type="text/html")

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/static/"):
            return await handler(request)
        if (language := request.query.get("lang")) in LANGUAGES:
            self.language = language
        await asyncio.sleep(self._mischief.lateness(request.path))
        response = await self._handled(request, handler)
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["Cache-Control"] = "no-store"
        return response

    async def _handled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._mischief.is_broken(request.path):
            return self._trouble(request)
        posted = request.method == "POST"
        lost = posted and self._mischief.is_lost(request.path)
        before = copy.deepcopy(self.state) if lost else None
        try:
            return await handler(request)
        except web.HTTPNotFound:
            return self._missing(request)
        finally:
            if before is not None:
                self.state = before

    def _trouble(self, request: web.Request) -> web.Response:
        title = self.say("Something went wrong", "出了点问题")
        text = self.say(
            "We could not show this page (error 500). Please try again in a moment.",
            "页面暂时无法显示（错误 500），请稍后重试。",
        )
        return self.page(request, title, _message(title, text), status=500)

    def _missing(self, request: web.Request) -> web.Response:
        title = self.say("Page not found", "找不到页面")
        text = self.say("There is nothing at this address.", "此地址没有内容。")
        return self.page(request, title, _message(title, text), status=404)


def _menu_link(request: web.Request, url: str, label: str) -> Markup:
    here = request.path == url or (url != "/" and request.path.startswith(url + "/"))
    return h(
        '<a href="{url}" class="{mark}">{label}</a>',
        url=url,
        label=label,
        mark="here" if here else "",
    )


def _message(title: str, text: str) -> Markup:
    return h(
        '<section class="card narrow"><h1>{title}</h1><p>{text}</p></section>',
        title=title,
        text=text,
    )


PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<title>{title} - {brand}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/style.css">
<script src="/static/site.js"></script>
{script}
</head>
<body class="{name} layout-{layout}" style="--accent: {accent}; --shift: {shift}px">
<header>
<a class="brand" href="/">{brand}</a>
<nav>{menu}</nav>
<span class="today">{today}</span>
<span class="language">{languages}</span>
</header>
<main>{notice}{body}</main>
<footer>{brand} · {foot}</footer>
</body>
</html>
"""

FRAMED = """<!doctype html>
<html><head><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="/static/style.css"></head>
<body class="framed">{body}</body></html>
"""
