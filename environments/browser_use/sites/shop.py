"""Harbor & Hearth: the shop with its catalogue, a wish list, a cart and a checkout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiohttp import web

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.shop_catalogue import DELIVERY, Catalogue, whole_number
from environments.browser_use.sites.site import Handler, load_data
from environments.browser_use.sites.widgets import (
    button_form,
    card,
    choice,
    choices,
    facts,
    field,
    select,
    table,
    tag,
)
from rollout.types import JsonObject

__all__ = ["Shop"]

GIFT_WRAP = 300
COUPONS = {"SPRING10": 10}
"""Code -> per cent off the goods."""
EXPIRED = frozenset({"WINTER20"})
PAYMENTS = ("card", "invoice", "cash")
ADDRESS = ("name", "street", "postcode", "city")


class Shop(Catalogue):
    """Things for the home; the visitor has an account with a wish list."""

    name = "shop"
    brand = {"en": "Harbor & Hearth", "zh": "港湾家居"}
    accent = "#0f6b66"

    def initial(self) -> JsonObject:
        return {"cart": [], "wishlist": load_data("shop")["wishlist"], "coupon": "", "orders": []}

    def menu(self) -> Iterator[tuple[str, str]]:
        yield "/search", self.say("All products", "全部商品")
        yield "/help", self.say("Delivery & returns", "配送与退货")
        yield "/wishlist", self.say("Wish list", "心愿单") + f" ({len(self.state['wishlist'])})"
        count = sum(line["quantity"] for line in self.state["cart"])
        yield "/cart", self.say("Cart", "购物车") + f" ({count})"

    def routes(self) -> Mapping[str, Handler]:
        return {
            **super().routes(),
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
        wanted = whole_number(str(form.get("quantity", "1")), 0)
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
            whole_number(str(form.get("line")), -1),
            whole_number(str(form.get("quantity")), -1),
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
