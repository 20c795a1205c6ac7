"""The goods of the shop: what is for sale, how it is found, and a page for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.picture import picture
from environments.browser_use.sites.site import Handler, Site, load_data
from environments.browser_use.sites.widgets import (
    card,
    choice,
    choices,
    facts,
    hidden,
    options,
    pages,
    select,
    tag,
)
from rollout.types import JsonObject

__all__ = ["DELIVERY", "Catalogue", "whole_number"]

PER_PAGE = 8
DELIVERY = {"standard": 490, "express": 990}
"""Delivery -> its price in cents; standard is free for goods that ship free."""


class Catalogue(Site):
    """Searching and looking; nothing here changes the site's state."""

    def __init__(self, *args: Any) -> None:
        data = load_data("shop")
        self.products: dict[str, JsonObject] = {each["id"]: each for each in data["products"]}
        self.categories: dict[str, dict[str, str]] = data["categories"]
        self.colours: dict[str, dict[str, str]] = data["colours"]
        super().__init__(*args)

    def routes(self) -> Mapping[str, Handler]:
        return {
            "GET /": self.home,
            "GET /search": self.search,
            "GET /product/{id}": self.product,
            "GET /help": self.help,
        }

    async def home(self, request: web.Request) -> web.Response:
        link = '<a class="button quiet" href="/search?category={key}">{name}</a>'
        links = [h(link, key=key, name=self.of(name)) for key, name in self.categories.items()]
        best = sorted(self.products.values(), key=lambda each: -each["rating"])[:4]
        return self.page(
            request,
            self.say("Home", "首页"),
            self._search_box(""),
            h(
                HOME,
                title=self.say("Spring is here: 10 % off everything", "春季特惠：全场九折"),
                text=self.say(
                    "Enter the code SPRING10 in your cart. Until 31 March 2026.",
                    "在购物车中输入优惠码 SPRING10，截至2026年3月31日。",
                ),
                links=links,
                best=self.say("Best rated", "好评推荐"),
                hits=[self._hit(each) for each in best],
            ),
        )

    async def search(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        found = self._sorted(self._found(query), query.get("sort", ""))
        number = max(1, whole_number(query.get("page", ""), 1))
        shown = found[(number - 1) * PER_PAGE : number * PER_PAGE]
        wide = h(
            RESULTS,
            count=self.say(f"{len(found)} products", f"共 {len(found)} 件商品"),
            sort=self._sorting(query),
            hits=[self._hit(each) for each in shown],
            nothing=None if shown else self.say("Nothing matches.", "没有符合条件的商品。"),
            pages=self._pages(query, number, -(-len(found) // PER_PAGE)),
        )
        return self.page(
            request,
            self.say("Products", "商品"),
            self._search_box(query.get("q", "")),
            h('<div class="columns">{facets}{wide}</div>', facets=self._facets(query), wide=wide),
        )

    async def product(self, request: web.Request) -> web.Response:
        item = self._item(request.match_info["id"])
        sold_out = h('<p class="error">{text}</p>', text=self.say("Sold out", "缺货"))
        return self.page(
            request,
            self.of(item),
            h(
                PRODUCT,
                picture=picture(item["category"], item["id"]),
                name=self.of(item),
                stars=self._stars(item),
                price=self.money(item["price"]),
                tags=self._tags(item),
                stock=self.say(f"{item['stock']} in stock", f"库存 {item['stock']} 件"),
                buy=self._buy(item) if item["stock"] else sold_out,
            ),
        )

    async def help(self, request: web.Request) -> web.Response:
        standard, express = self.money(DELIVERY["standard"]), self.money(DELIVERY["express"])
        rules = load_data("shop_help")
        rows = [
            (
                self.of(rule["name"]),
                self.of(rule["text"]).format(standard=standard, express=express),
            )
            for rule in rules
        ]
        title = self.say("Delivery & returns", "配送与退货")
        return self.page(request, title, card(title, facts(rows), kind="narrow"))

    def _item(self, key: str) -> JsonObject:
        if key not in self.products:
            raise web.HTTPNotFound
        return self.products[key]

    def _found(self, query: Mapping[str, str]) -> list[JsonObject]:
        words = query.get("q", "").casefold().split()
        low, high = _cents(query.get("min", ""), 0), _cents(query.get("max", ""), 10**9)
        if self.language == "zh":
            low, high = low / 7, high / 7
        return [
            item
            for item in self.products.values()
            if all(word in self._searchable(item) for word in words)
            and query.get("category", "") in ("", item["category"])
            and query.get("brand", "") in ("", item["brand"])
            and low <= item["price"] <= high
            and item["rating"] >= float(_cents(query.get("rating", ""), 0)) / 100
            and (item["free"] or "free" not in query)
            and (item["stock"] or "stock" not in query)
        ]

    def _searchable(self, item: JsonObject) -> str:
        category = self.categories[item["category"]]
        return " ".join((item["en"], item["zh"], category["en"], category["zh"])).casefold()

    def _sorted(self, items: list[JsonObject], order: str) -> list[JsonObject]:
        keys = {"cheap": "price", "dear": "price", "rating": "rating", "reviews": "reviews"}
        if order not in keys:
            return items
        return sorted(items, key=lambda item: item[keys[order]], reverse=order != "cheap")

    def _search_box(self, words: str) -> Markup:
        return h(
            SEARCH,
            words=words,
            hint=self.say("What are you looking for?", "您想找什么？"),
            search=self.say("Search", "搜索"),
        )

    def _facets(self, query: Mapping[str, str]) -> Markup:
        brands = sorted({item["brand"] for item in self.products.values()})
        every = {"": self.say("All", "全部")}
        categories = every | {key: self.of(name) for key, name in self.categories.items()}
        ratings = {"": self.say("Any rating", "不限评分")} | {
            stars: self.say(f"{stars} stars & up", f"{stars}星及以上")
            for stars in ("4.5", "4", "3.5")
        }
        free, stock = self.say("Free shipping", "包邮"), self.say("In stock", "有货")
        return h(
            FACETS,
            kept=hidden({"q": query.get("q", ""), "sort": query.get("sort", "")}),
            category=select(
                "category", self.say("Category", "类别"), categories, query.get("category", "")
            ),
            brand=select(
                "brand",
                self.say("Brand", "品牌"),
                every | {each: each for each in brands},
                query.get("brand", ""),
            ),
            price=self.say("Price ($)", "价格 (¥)"),
            min=query.get("min", ""),
            max=query.get("max", ""),
            rating=choices("rating", self.say("Rating", "评分"), ratings, query.get("rating", "")),
            free=choice("checkbox", "free", "1", free, "free" in query),
            stock=choice("checkbox", "stock", "1", stock, "stock" in query),
            apply=self.say("Apply filters", "应用筛选"),
        )

    def _sorting(self, query: Mapping[str, str]) -> Markup:
        orders = {
            "": self.say("Recommended", "推荐"),
            "cheap": self.say("Price: low to high", "价格从低到高"),
            "dear": self.say("Price: high to low", "价格从高到低"),
            "rating": self.say("Best rated", "评分最高"),
            "reviews": self.say("Most reviewed", "评价最多"),
        }
        return h(
            SORTING,
            kept=hidden({k: v for k, v in query.items() if k not in ("sort", "page", "lang")}),
            sort=self.say("Sort by", "排序"),
            orders=options(orders, query.get("sort", "")),
        )

    def _pages(self, query: Mapping[str, str], number: int, count: int) -> Markup:
        kept = {key: value for key, value in query.items() if key not in ("page", "lang")}
        return pages(
            {n: f"/search?{urlencode({**kept, 'page': n})}" for n in range(1, count + 1)}, number
        )

    def _hit(self, item: JsonObject) -> Markup:
        return h(
            HIT,
            picture=picture(item["category"], item["id"]),
            id=item["id"],
            name=self.of(item),
            stars=self._stars(item),
            price=self.money(item["price"]),
            tags=self._tags(item),
        )

    def _stars(self, item: JsonObject) -> Markup:
        return h(
            '<span class="stars">★ {rating:.1f}</span> <small>({reviews})</small>',
            rating=item["rating"],
            reviews=self.say(f"{item['reviews']:,} reviews", f"{item['reviews']:,} 条评价"),
        )

    def _tags(self, item: JsonObject) -> Iterator[Markup]:
        if item["free"]:
            yield tag(self.say("Free shipping", "包邮"), "good")
        if not item["stock"]:
            yield tag(self.say("Sold out", "缺货"), "bad")

    def _buy(self, item: JsonObject) -> Markup:
        return h(
            BUY,
            id=item["id"],
            colour=select(
                "colour",
                self.say("Colour", "颜色"),
                {each: self.of(self.colours[each]) for each in item["colours"]},
            ),
            quantity=self.say("Quantity", "数量"),
            add=self.part(
                "add", h("<button>{text}</button>", text=self.say("Add to cart", "加入购物车"))
            ),
            wish=self.say("Save on wish list", "加入心愿单"),
        )

    def _link(self, item: JsonObject) -> Markup:
        return h('<a href="/product/{id}">{name}</a>', id=item["id"], name=self.of(item))


def whole_number(text: str, default: int) -> int:
    """What a form says, where that is a number of at most five digits."""
    return int(text) if text.isdecimal() and len(text) < 6 else default


def _cents(text: str, default: int) -> float:
    try:
        return round(float(text) * 100)
    except (ValueError, OverflowError):
        return default


HOME = """<section class="banner"><h1>{title}</h1><p>{text}</p></section>
<section class="card"><div class="row">{links}</div></section>
<h2>{best}</h2><div class="grid">{hits}</div>"""

SEARCH = """<form class="search" action="/search">
<input name="q" value="{words}" placeholder="{hint}" aria-label="{hint}"><button>{search}</button>
</form>"""

RESULTS = """<div class="wide">
<div class="row between"><p>{count}</p>{sort}</div>
<div class="grid hits">{hits}</div><p>{nothing}</p>{pages}
</div>"""

FACETS = """<form class="side card" action="/search">{kept}{category}{brand}
<fieldset><legend>{price}</legend><div class="row">
<input type="number" name="min" value="{min}" aria-label="min" min="0">
<input type="number" name="max" value="{max}" aria-label="max" min="0">
</div></fieldset>
{rating}<fieldset>{free}{stock}</fieldset>
<button>{apply}</button>
</form>"""

SORTING = """<form action="/search">{kept}
<label>{sort} <select name="sort" data-auto>{orders}</select></label>
</form>"""

HIT = """<div class="hit">{picture}<div class="text">
<a class="name" href="/product/{id}">{name}</a>{stars}
<div class="row between"><span class="price">{price}</span><span>{tags}</span></div>
</div></div>"""

PRODUCT = """<div class="columns"><div class="large">{picture}</div>
<div class="wide card"><h1>{name}</h1><p>{stars}</p><p class="price">{price}</p>
<p>{tags} <span class="soft">{stock}</span></p>{buy}</div></div>"""

BUY = """<form method="post" action="/cart/add">
<input type="hidden" name="id" value="{id}">
<div class="row bottom">{colour}
<label class="field"><span>{quantity}</span>
<input type="number" name="quantity" value="1" min="1"></label>
</div>
<div class="row actions">{add}
<button class="quiet" formaction="/wishlist/add">{wish}</button></div>
</form>"""
