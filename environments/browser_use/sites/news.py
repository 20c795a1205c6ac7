"""The Meridian: news with a cookie banner, menus, a list that grows, search, and newsletters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from aiohttp import web

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.picture import picture
from environments.browser_use.sites.site import Handler, Site, load_data
from environments.browser_use.sites.widgets import button_form, card, choice, field, select
from rollout.types import JsonObject

__all__ = ["News"]

AT_ONCE = 6
MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", re.I)
CONSENTS = ("all", "necessary")


class News(Site):
    """A newspaper; nothing can be read before the question about cookies is answered."""

    name = "news"
    brand = {"en": "The Meridian", "zh": "子午线新闻"}
    accent = "#a3241c"
    script = "news.js"

    def __init__(self, *args: Any) -> None:
        data = load_data("news")
        self.articles: list[JsonObject] = data["articles"]
        self.sections: dict[str, JsonObject] = data["sections"]
        self.newsletters: dict[str, dict[str, str]] = data["newsletters"]
        super().__init__(*args)

    def initial(self) -> JsonObject:
        return {"consent": "", "saved": [], "subscriptions": []}

    def menu(self) -> Iterator[tuple[str, str]]:
        yield "/", self.say("Latest", "最新")
        yield "/search", self.say("Search", "搜索")
        yield "/newsletters", self.say("Newsletters", "订阅通讯")
        yield "/saved", self.say("Saved", "收藏") + f" ({len(self.state['saved'])})"

    def routes(self) -> Mapping[str, Handler]:
        return {
            "GET /": self.latest,
            "GET /more": self.more,
            "GET /section/{key}": self.section,
            "GET /topic/{key}": self.topic,
            "GET /article/{id}": self.article,
            "GET /search": self.search,
            "GET /saved": self.saved,
            "POST /saved": self.save,
            "GET /newsletters": self.letters,
            "POST /newsletters": self.subscribe,
            "POST /consent": self.consent,
        }

    async def latest(self, request: web.Request) -> web.Response:
        title = self.say("Latest news", "最新报道")
        return self._paper(
            request,
            title,
            h("<h1>{title}</h1>", title=title),
            h(
                '<div id="stories">{stories}</div>'
                '<p id="more" data-failed="{failed}" data-again="{again}">{loading}</p>',
                stories=map(self._story, self.articles[:AT_ONCE]),
                failed=self.say("More stories could not be loaded.", "更多报道加载失败。"),
                again=self.say("Try again", "重试"),
                loading=self.say("Scroll for more", "向下滚动加载更多"),
            ),
        )

    async def more(self, request: web.Request) -> web.Response:
        text = request.query.get("after", "0")
        first = int(text) if text.isdecimal() else 0
        stories = map(self._story, self.articles[first : first + AT_ONCE])
        return web.Response(text=h("{stories}", stories=stories), content_type="text/html")

    async def section(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        if key not in self.sections:
            raise web.HTTPNotFound
        return self._list(request, self.of(self.sections[key]["name"]), "section", key)

    async def topic(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        names = {k: name for each in self.sections.values() for k, name in each["topics"].items()}
        if key not in names:
            raise web.HTTPNotFound
        return self._list(request, self.of(names[key]), "topic", key)

    async def article(self, request: web.Request) -> web.Response:
        article = self._article(request.match_info["id"])
        body = h(
            ARTICLE,
            title=self.of(article),
            by=self.say(f"By {article['author']}", f"记者：{article['author']}"),
            date=self.date(article["date"]),
            text=self.of(article["text"]),
            save=button_form("/saved", self.say("Save article", "收藏文章"), {"id": article["id"]}),
        )
        return self._paper(request, self.of(article), body)

    async def search(self, request: web.Request) -> web.Response:
        query = request.query
        every = {"": self.say("All sections", "全部栏目")}
        sections = every | {key: self.of(each["name"]) for key, each in self.sections.items()}
        form = h(
            '<form class="card" action="/search"><div class="two">{words}{section}</div>'
            '<div class="two">{since}{until}</div><button>{go}</button></form>',
            words=field("q", self.say("Words", "关键词"), query.get("q", "")),
            section=select(
                "section", self.say("Section", "栏目"), sections, query.get("section", "")
            ),
            since=field(
                "since",
                self.say("From (YYYY-MM-DD)", "起始日期（YYYY-MM-DD）"),
                query.get("since", ""),
            ),
            until=field(
                "until",
                self.say("To (YYYY-MM-DD)", "截止日期（YYYY-MM-DD）"),
                query.get("until", ""),
            ),
            go=self.say("Search the archive", "搜索报道"),
        )
        title = self.say("Search", "搜索")
        if not {"q", "section", "since", "until"} & set(query):
            return self._paper(request, title, form)
        found = [each for each in self.articles if self._matches(each, query)]
        count = h(
            "<h2>{text}</h2>", text=self.say(f"{len(found)} results", f"共 {len(found)} 条结果")
        )
        return self._paper(request, title, form, count, *map(self._story, found))

    async def saved(self, request: web.Request) -> web.Response:
        title = self.say("Saved articles", "收藏的文章")
        found = [self._article(key) for key in self.state["saved"]]
        return self._paper(
            request, title, h("<h1>{title}</h1>", title=title), *map(self._story, found)
        )

    async def save(self, request: web.Request) -> web.Response:
        key = self._article(str((await request.post()).get("id")))["id"]
        if key not in self.state["saved"]:
            self.state["saved"].append(key)
        self.notify(self.say("Saved for later.", "已收藏。"))
        return self.go(f"/article/{key}")

    async def letters(self, request: web.Request) -> web.Response:
        title = self.say("Newsletters", "订阅通讯")
        boxes = [
            choice("checkbox", "letter", key, self.of(name), key in ("morning", "offers"))
            for key, name in self.newsletters.items()
        ]
        form = h(
            '<form method="post" action="/newsletters">{boxes}<p></p>{mail}<button>{go}</button></form>',
            boxes=boxes,
            mail=field("email", self.say("E-mail", "邮箱")),
            go=self.say("Subscribe", "订阅"),
        )
        return self._paper(request, title, card(title, form, kind="narrow"))

    async def subscribe(self, request: web.Request) -> web.Response:
        form = await request.post()
        mail = str(form.get("email", "")).strip()
        chosen = [key for key in form.getall("letter", []) if key in self.newsletters]
        if not MAIL.fullmatch(mail) or not chosen:
            self.notify(
                self.say(
                    "Choose a newsletter and give your e-mail address.",
                    "请选择通讯并填写正确的邮箱。",
                ),
                "bad",
            )
        else:
            self.state["subscriptions"].append({"email": mail, "letters": chosen})
            self.notify(self.say("You are subscribed.", "订阅成功。"))
        return self.go("/newsletters")

    async def consent(self, request: web.Request) -> web.Response:
        form = await request.post()
        chosen = str(form.get("choice"))
        self.state["consent"] = chosen if chosen in CONSENTS else ""
        back = str(form.get("back", "/"))
        return self.go(back if back.startswith("/") and not back.startswith("//") else "/")

    def _article(self, key: str) -> JsonObject:
        found = next((each for each in self.articles if each["id"] == key), None)
        if found is None:
            raise web.HTTPNotFound
        return found

    def _matches(self, article: JsonObject, query: Mapping[str, str]) -> bool:
        text = " ".join((article["en"], article["zh"], *article["text"].values())).casefold()
        return (
            all(word in text for word in query.get("q", "").casefold().split())
            and query.get("section", "") in ("", article["section"])
            and _day(query.get("since", ""), date.min) <= date.fromisoformat(article["date"])
            and date.fromisoformat(article["date"]) <= _day(query.get("until", ""), date.max)
        )

    def _list(self, request: web.Request, title: str, key: str, value: str) -> web.Response:
        found = [each for each in self.articles if each[key] == value]
        return self._paper(
            request, title, h("<h1>{title}</h1>", title=title), *map(self._story, found)
        )

    def _story(self, article: JsonObject) -> Markup:
        return h(
            STORY,
            picture=picture(article["section"], article["id"]),
            id=article["id"],
            title=self.of(article),
            section=self.of(self.sections[article["section"]]["name"]),
            date=self.date(article["date"]),
            author=article["author"],
        )

    def _paper(self, request: web.Request, title: str, *body: Markup) -> web.Response:
        """A page with the sections on top, and the question about cookies until it is answered."""
        sections = [self._section(key, each) for key, each in self.sections.items()]
        bar = h('<div class="sections">{sections}</div>', sections=sections)
        banner = Markup("") if self.state["consent"] else self._cookies(request)
        return self.page(request, title, bar, *body, banner)

    def _section(self, key: str, section: JsonObject) -> Markup:
        link = '<a href="/topic/{key}">{name}</a>'
        return h(
            '<div><a href="/section/{key}">{name}</a><div class="drop">{topics}</div></div>',
            key=key,
            name=self.of(section["name"]),
            topics=[h(link, key=k, name=self.of(name)) for k, name in section["topics"].items()],
        )

    def _cookies(self, request: web.Request) -> Markup:
        return h(
            COOKIES,
            title=self.say("We value your privacy", "我们重视您的隐私"),
            text=self.say(
                "We and 214 partners would like to store cookies to measure and to advertise.",
                "我们与214家合作伙伴希望存储Cookie，用于统计和广告。",
            ),
            back=request.path_qs,
            all=self.say("Accept all", "全部接受"),
            necessary=self.say("Necessary only", "仅限必要"),
        )


def _day(text: str, default: date) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return default


STORY = """<div class="story">{picture}<div><h2><a href="/article/{id}">{title}</a></h2>
<span class="soft">{section} · {date} · {author}</span></div></div>"""

ARTICLE = """<article class="card"><h1>{title}</h1><p class="soft">{by} · {date}</p><p>{text}</p>{save}
</article>"""

COOKIES = """<div class="cookies"><form method="post" action="/consent"><h2>{title}</h2><p>{text}</p>
<input type="hidden" name="back" value="{back}"><div class="row">
<button name="choice" value="all">{all}</button>
<button class="quiet" name="choice" value="necessary">{necessary}</button></div></form></div>"""
