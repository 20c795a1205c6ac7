"""Harbor & Hearth: a shop with facets, a wish list, a cart and a checkout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.picture import picture
from environments.browser_use.sites.site import Handler, Site, load_data
from environments.browser_use.sites.widgets import (
    button_form,
    card,
    choice,
    choices,
    facts,
    field,
    hidden,
    options,
    pages,
    select,
    table,
    tag,
)
from rollout.types import JsonObject

__all__ = ["Shop"]

PER_PAGE = 8
DELIVERY = {"standard": 490, "express": 990}
"""Delivery -> its price in cents; standard is free for goods that ship free."""
GIFT_WRAP = 300
COUPONS = {"SPRING10": 10}
"""Code -> per cent off the goods."""
EXPIRED = frozenset({"WINTER20"})
PAYMENTS = ("card", "invoice", "cash")
ADDRESS = ("name", "street", "postcode", "city")


class Shop(Site):
    """Things for the home; the visitor has an account with a wish list."""

    name = "shop"
    brand = {"en": "Harbor & Hearth", "zh": "港湾家居"}
    accent = "#0f6b66"

    def __init__(self, *args: Any) -> None:
        data = load_data("shop")
        self.products: dict[str, JsonObject] = {each["id"]: each for each in data["products"]}
        self.categories: dict[str, dict[str, str]] = data["categories"]
        self.colours: dict[str, dict[str, str]] = data["colours"]
        self.wishlist: list[str] = data["wishlist"]
        super().__init__(*args)

    def initial(self) -> JsonObject:
        return {"cart": [], "wishlist": list(self.wishlist), "coupon": "", "orders": []}

    def menu(self) -> Iterator[tuple[str, str]]:
        yield "/search", self.say("All products", "全部商品")
        yield "/help", self.say("Delivery & returns", "配送与退货")
        yield "/wishlist", self.say("Wish list", "心愿单") + f" ({len(self.state['wishlist'])})"
        count = sum(line["quantity"] for line in self.state["cart"])
        yield "/cart", self.say("Cart", "购物车") + f" ({count})"

    def routes(self) -> Mapping[str, Handler]:
        return {
            "GET /": self.home,
            "GET /search": self.search,
            "GET /product/{id}": self.product,
            "GET /help": self.help,
            "GET /wishlist": self.wishes,
            "POST /wishlist/add": self.wish,
            "POST /wishlist/remove": self.unwish,
            "GET /cart": self.cart,
            "POST /cart/add": self.add,
            "POST /cart/update": self.update,
            "POST /cart/coupon": self.coupon,
            "GET /checkout": self.checkout,
            "POST /checkout": self.order,
            "GET /orders/{number}": self.placed,
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
        number = max(1, _number(query.get("page", ""), 1))
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

    async def wishes(self, request: web.Request) -> web.Response:
        rows = [self._wish_row(self.products[each]) for each in self.state["wishlist"]]
        title = self.say("Wish list", "心愿单")
        head = (self.say("Product", "商品"), "", self.say("Price", "价格"), "")
        return self.page(request, title, card(title, table(head, rows, right=2)))

    async def wish(self, request: web.Request) -> web.Response:
        item = self._item(str((await request.post()).get("id")))
        if item["id"] not in self.state["wishlist"]:
            self.state["wishlist"].append(item["id"])
        self.notify(self.say("Saved on your wish list.", "已加入心愿单。"))
        return self.go(f"/product/{item['id']}")

    async def unwish(self, request: web.Request) -> web.Response:
        gone = str((await request.post()).get("id"))
        self.state["wishlist"] = [each for each in self.state["wishlist"] if each != gone]
        self.notify(self.say("Removed from your wish list.", "已从心愿单移除。"))
        return self.go("/wishlist")

    async def add(self, request: web.Request) -> web.Response:
        form = await request.post()
        item = self._item(str(form.get("id")))
        colour = str(form.get("colour", item["colours"][0]))
        wanted = _number(str(form.get("quantity", "1")), 0)
        lines = self.state["cart"]
        line = next(
            (each for each in lines if (each["id"], each["colour"]) == (item["id"], colour)), None
        )
        total = wanted + (line["quantity"] if line else 0)
        if wanted < 1 or total > item["stock"] or colour not in item["colours"]:
            self.notify(
                self.say(f"We have {item['stock']} of these.", f"库存仅有 {item['stock']} 件。"),
                "bad",
            )
            return self.go(f"/product/{item['id']}")
        if line:
            line["quantity"] = total
        else:
            lines.append({"id": item["id"], "colour": colour, "quantity": wanted})
        self.notify(
            self.say(
                f"Added to your cart: {wanted} x {item['en']}",
                f"已加入购物车：{item['zh']} × {wanted}",
            )
        )
        return self.go(f"/product/{item['id']}")

    async def update(self, request: web.Request) -> web.Response:
        form = await request.post()
        number, quantity = (
            _number(str(form.get("line")), -1),
            _number(str(form.get("quantity")), -1),
        )
        lines = self.state["cart"]
        if not 0 <= number < len(lines) or quantity < 0:
            return self.go("/cart")
        if quantity > self.products[lines[number]["id"]]["stock"]:
            self.notify(self.say("We do not have that many.", "库存不足。"), "bad")
        elif quantity == 0:
            del lines[number]
            self.notify(self.say("Removed from your cart.", "已从购物车移除。"))
        else:
            lines[number]["quantity"] = quantity
            self.notify(self.say("Cart updated.", "购物车已更新。"))
        return self.go("/cart")

    async def coupon(self, request: web.Request) -> web.Response:
        code = str((await request.post()).get("code", "")).strip().upper()
        if code in COUPONS:
            self.state["coupon"] = code
            self.notify(self.say(f"Code {code} is applied.", f"优惠码 {code} 已生效。"))
        elif code in EXPIRED:
            self.notify(self.say(f"The code {code} has expired.", f"优惠码 {code} 已失效。"), "bad")
        else:
            self.notify(self.say("We do not know this code.", "优惠码无效。"), "bad")
        return self.go("/cart")

    async def cart(self, request: web.Request) -> web.Response:
        count = sum(line["quantity"] for line in self.state["cart"])
        title = self.say("Your cart", "购物车") + f" ({count})"
        if not self.state["cart"]:
            empty = h("<p>{text}</p>", text=self.say("Your cart is empty.", "购物车是空的。"))
            return self.page(request, title, card(title, empty))
        rows = [self._cart_row(n, line) for n, line in enumerate(self.state["cart"])]
        checkout = '<a class="button" href="/checkout">{text}</a>'
        below = h(
            BELOW_CART,
            hint=self.say("Discount code", "优惠码"),
            apply=self.say("Apply code", "使用"),
            sums=self._sums(),
            checkout=self.part("checkout", h(checkout, text=self.say("Go to checkout", "去结算"))),
        )
        head = (
            self.say("Product", "商品"),
            self.say("Quantity", "数量"),
            "",
            self.say("Each", "单价"),
            self.say("Sum", "小计"),
        )
        return self.page(request, title, card(title, table(head, rows, right=2)), below)

    async def checkout(self, request: web.Request) -> web.Response:
        if not self.state["cart"]:
            return self.go("/cart")
        return self._checkout(request, {}, {})

    async def order(self, request: web.Request) -> web.Response:
        form = {key: str(value).strip() for key, value in (await request.post()).items()}
        missing = {
            key: self.say("Please fill this in.", "请填写此项。")
            for key in ADDRESS
            if not form.get(key)
        }
        if form.get("delivery") not in DELIVERY:
            missing["delivery"] = self.say("Please choose.", "请选择。")
        if form.get("payment") not in PAYMENTS:
            missing["payment"] = self.say("Please choose.", "请选择。")
        if missing or not self.state["cart"]:
            return self._checkout(request, form, missing)
        number = f"HH-{20418 + 7 * len(self.state['orders'])}"
        gift = form.get("gift") == "yes"
        self.state["orders"].append(
            {key: form[key] for key in (*ADDRESS, "delivery", "payment")}
            | {
                "number": number,
                "gift": gift,
                "lines": self.state["cart"],
                "coupon": self.state["coupon"],
            }
            | {"total": self._total(form["delivery"], gift)}
        )
        self.state["cart"], self.state["coupon"] = [], ""
        return self.go(f"/orders/{number}")

    async def placed(self, request: web.Request) -> web.Response:
        number = request.match_info["number"]
        order = next((each for each in self.state["orders"] if each["number"] == number), None)
        if order is None:
            raise web.HTTPNotFound
        title = self.say("Thank you for your order", "感谢您的订购")
        where = f"{order['name']}, {order['street']}, {order['postcode']} {order['city']}"
        rows = (
            (self.say("Order number", "订单号"), order["number"]),
            (self.say("Total", "合计"), self.money(order["total"])),
            (self.say("Delivered to", "收货人"), where),
        )
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

    def _wish_row(self, item: JsonObject) -> list[Markup]:
        return [
            self._link(item),
            self._stars(item),
            h('<span class="price">{price}</span>', price=self.money(item["price"])),
            button_form("/wishlist/remove", self.say("Remove", "移除"), {"id": item["id"]}),
        ]

    def _cart_row(self, number: int, line: JsonObject) -> list[Markup]:
        item = self.products[line["id"]]
        return [
            h(
                "{link} {colour}",
                link=self._link(item),
                colour=tag(self.of(self.colours[line["colour"]])),
            ),
            h(
                QUANTITY,
                n=number,
                quantity=line["quantity"],
                label=self.say("Quantity", "数量"),
                update=self.say("Update", "更新"),
            ),
            button_form(
                "/cart/update",
                self.say("Remove", "移除"),
                {"line": number, "quantity": 0},
                kind="plain",
            ),
            h("{each}", each=self.money(item["price"])),
            h('<span class="price">{sum}</span>', sum=self.money(item["price"] * line["quantity"])),
        ]

    def _link(self, item: JsonObject) -> Markup:
        return h('<a href="/product/{id}">{name}</a>', id=item["id"], name=self.of(item))

    def _goods(self) -> tuple[int, int]:
        """The cart's value and the discount on it, cents."""
        goods = sum(
            self.products[line["id"]]["price"] * line["quantity"] for line in self.state["cart"]
        )
        return goods, goods * COUPONS.get(self.state["coupon"], 0) // 100

    def _delivery(self, kind: str) -> int:
        free = all(self.products[line["id"]]["free"] for line in self.state["cart"])
        return 0 if kind == "standard" and free else DELIVERY[kind]

    def _total(self, delivery: str, gift: bool) -> int:
        goods, discount = self._goods()
        return goods - discount + self._delivery(delivery) + GIFT_WRAP * gift

    def _sums(self) -> Markup:
        goods, discount = self._goods()
        less = [(self.state["coupon"], f"-{self.money(discount)}")] if discount else []
        due = h('<span class="price">{due}</span>', due=self.money(goods - discount))
        return facts(
            [
                (self.say("Goods", "商品"), self.money(goods)),
                *less,
                (self.say("Before delivery", "未含运费"), due),
            ]
        )

    def _checkout(
        self, request: web.Request, form: Mapping[str, str], errors: Mapping[str, str]
    ) -> web.Response:
        labels = {
            "name": self.say("Full name", "收货人姓名"),
            "street": self.say("Street and number", "街道门牌"),
            "postcode": self.say("Postcode", "邮编"),
            "city": self.say("City", "城市"),
        }
        payments = {
            "": self.say("Please choose", "请选择"),
            "card": self.say("Card ending in 4471", "尾号4471的银行卡"),
            "invoice": self.say("Invoice", "账单支付"),
            "cash": self.say("Cash on delivery", "货到付款"),
        }
        delivery = {
            "standard": self.say("Standard, ", "标准配送，")
            + self.money(self._delivery("standard")),
            "express": self.say("Express, ", "加急配送，") + self.money(DELIVERY["express"]),
        }
        gift = self.say("Gift wrap, ", "礼品包装，") + self.money(GIFT_WRAP)
        title = self.say("Checkout", "结算")
        body = h(
            CHECKOUT,
            title=title,
            fields=[
                field(key, label, form.get(key, ""), errors.get(key, ""))
                for key, label in labels.items()
            ],
            delivery=choices(
                "delivery",
                self.say("Delivery", "配送方式"),
                delivery,
                form.get("delivery"),
                errors.get("delivery", ""),
            ),
            payment=select(
                "payment",
                self.say("Payment", "支付方式"),
                payments,
                form.get("payment", ""),
                errors.get("payment", ""),
            ),
            gift=choice("checkbox", "gift", "yes", gift, form.get("gift") == "yes"),
            sums=self._sums(),
            buy=self.say("Place order", "提交订单"),
        )
        return self.page(request, title, body, status=422 if errors else 200)


def _number(text: str, default: int) -> int:
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

QUANTITY = """<form method="post" action="/cart/update" class="row">
<input type="hidden" name="line" value="{n}">
<input type="number" name="quantity" value="{quantity}" min="0" aria-label="{label}">
<button class="quiet">{update}</button>
</form>"""

BELOW_CART = """<section class="card"><div class="columns">
<div class="wide"><form method="post" action="/cart/coupon" class="row">
<input name="code" placeholder="{hint}" aria-label="{hint}"><button class="quiet">{apply}</button>
</form></div>
<div>{sums}<p></p>{checkout}</div>
</div></section>"""

CHECKOUT = """<form method="post" action="/checkout" class="columns">
<div class="wide card"><h1>{title}</h1>
<div class="two">{fields}</div><div class="two">{delivery}<div>{payment}{gift}</div></div></div>
<div class="side card">{sums}<p></p><button>{buy}</button></div>
</form>"""
