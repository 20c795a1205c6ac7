"""Verifiers of the tasks on the shop."""

from collections.abc import Iterator
from typing import Any

from rollout.answers import declined, numbers, said, said_any
from rollout.types import JsonObject

Checks = Iterator[tuple[str, Any]]

WISHES = ["L403", "M305", "B603"]


def _rest(state: JsonObject, *changed: str) -> bool:
    """Whether all but the named parts of the state are as they were."""
    first: JsonObject = {"cart": [], "wishlist": WISHES, "coupon": "", "orders": []}
    return all(state["shop"][key] == value for key, value in first.items() if key not in changed)


def _cart(state: JsonObject, *lines: tuple[str, str, int]) -> bool:
    cart = [(line["id"], line["colour"], line["quantity"]) for line in state["shop"]["cart"]]
    return cart == list(lines)


def _order(state: JsonObject) -> JsonObject:
    orders = state["shop"]["orders"]
    return orders[0] if len(orders) == 1 else {}


def _sent_to(order: JsonObject, *address: str) -> bool:
    keys = ("name", "street", "postcode", "city")
    return [order.get(key) for key in keys] == list(address)


def verify_shop_cheapest_kettle(state: JsonObject, answer: str) -> Checks:
    others = ("Brisa", "Nordvik", "Tamsin", "Pebble", "Linden", "Aurora")
    yield "names the kettle", said(answer, "Hearthstone") and not said_any(answer, *others)
    yield "names its price", 34.9 in numbers(answer)
    yield "changed nothing", _rest(state)


def verify_shop_two_blue_mugs(state: JsonObject, answer: str) -> Checks:
    yield "two blue mugs in the cart", _cart(state, ("M301", "blue", 2))
    yield "changed nothing else", _rest(state, "cart")


def verify_shop_headphones_wish(state: JsonObject, answer: str) -> Checks:
    yield "the headphones are on the wish list", state["shop"]["wishlist"] == [*WISHES, "H504"]
    yield "changed nothing else", _rest(state, "wishlist")


def verify_shop_order_lamp(state: JsonObject, answer: str) -> Checks:
    order = _order(state)
    yield "one black lamp", order.get("lines") == [{"id": "L402", "colour": "black", "quantity": 1}]
    yield "with the code", order.get("coupon") == "SPRING10"
    yield "express", order.get("delivery") == "express"
    yield "gift wrapped", order.get("gift") is True
    yield "by invoice", order.get("payment") == "invoice"
    yield "to the address", _sent_to(order, "Dana Ruiz", "12 Quay Street", "4051", "Northbridge")
    yield "tells number and total", said(answer, "HH-20418") and 48.0 in numbers(answer)
    yield "changed nothing else", _rest(state, "orders")


def verify_shop_wishlist_tidy(state: JsonObject, answer: str) -> Checks:
    yield "only the lamp is gone", state["shop"]["wishlist"] == ["M305", "B603"]
    yield "changed nothing else", _rest(state, "wishlist")


def verify_shop_teapot_zh(state: JsonObject, answer: str) -> Checks:
    yield "the teapot is in the cart", _cart(state, ("T202", "white", 1))
    yield "tells its price", 154.0 in numbers(answer)
    yield "changed nothing else", _rest(state, "cart")


def verify_shop_returns_zh(state: JsonObject, answer: str) -> Checks:
    yield "the period for lamps", 21 in numbers(answer) and 45 not in numbers(answer)
    buyer = said_any(
        answer, "买家", "顾客", "自己", "自付", "您", "买方", "you", "buyer", "customer"
    )
    yield "who pays", buyer and not said_any(answer, "由本店", "由商家", "由卖家")
    yield "changed nothing", _rest(state)


def verify_shop_cart_forgets(state: JsonObject, answer: str) -> Checks:
    yield "three kettles in the cart", _cart(state, ("K101", "white", 3))
    yield "changed nothing else", _rest(state, "cart")


def verify_shop_checkout_hides(state: JsonObject, answer: str) -> Checks:
    order = _order(state)
    yield "two mugs", order.get("lines") == [{"id": "M305", "colour": "sand", "quantity": 2}]
    yield "standard delivery", order.get("delivery") == "standard" and order.get("gift") is False
    yield "by card", order.get("payment") == "card"
    yield "to the address", _sent_to(order, "Milo Brandt", "3 Fern Road", "4055", "Northbridge")
    yield "tells the total", 32.0 in numbers(answer)
    yield "changed nothing else", _rest(state, "orders")


def verify_shop_no_blue_kettle(state: JsonObject, answer: str) -> Checks:
    yield "says that it can't be had", declined(answer)
    yield "changed nothing", _rest(state)
