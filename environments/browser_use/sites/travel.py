"""Skylark: the flight search, passengers, and bookings that can be cancelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import cast

from aiohttp import web

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.site import Handler
from environments.browser_use.sites.timetable import Flight, flights
from environments.browser_use.sites.travel_search import FlightSearch
from environments.browser_use.sites.widgets import (
    button_form,
    card,
    choices,
    facts,
    field,
    select,
    table,
    tag,
)
from rollout.types import JsonObject

__all__ = ["Travel"]

BAGS = (0, 2500, 6500)
"""Price of so many checked bags, cents a person."""
SEATS = ("aisle", "window", "any")


class Travel(FlightSearch):
    """An airline portal; the visitor is logged in and has two bookings."""

    name = "travel"
    brand = {"en": "Skylark Flights", "zh": "云雀航空旅行"}
    accent = "#1d4f9f"
    script = "travel.js"

    def initial(self) -> JsonObject:
        return {"bookings": [dict(each) for each in self.data["bookings"]]}

    def menu(self) -> Iterator[tuple[str, str]]:
        yield "/", self.say("Search", "搜索航班")
        yield "/bookings", self.say("My bookings", "我的订单")
        yield "/fees", self.say("Baggage", "行李规定")

    def routes(self) -> Mapping[str, Handler]:
        return {
            **super().routes(),
            "GET /passengers": self.passengers,
            "POST /passengers": self.book,
            "GET /bookings": self.bookings,
            "GET /bookings/{ref}": self.booking,
            "POST /bookings/cancel": self.cancel,
            "GET /fees": self.fees,
        }

    async def passengers(self, request: web.Request) -> web.Response:
        return self._passengers(request, dict(request.query), {}, {})

    async def book(self, request: web.Request) -> web.Response:
        form = {key: str(value).strip() for key, value in (await request.post()).items()}
        query = dict(request.query)
        names = [f"name{n}" for n in range(1, self._people(query) + 1)]
        errors = {
            name: self.say("Please give first and last name.", "请填写姓名。")
            for name in names
            if len(form.get(name, "")) < 2
        }
        if form.get("seat") not in SEATS:
            errors["seat"] = self.say("Please choose.", "请选择。")
        legs = self._legs(query)
        if errors or not legs:
            return self._passengers(request, query, form, errors)
        bags = min(int(form["bags"]), 2) if form.get("bags", "").isdecimal() else 0
        ref = f"SKY9{'KTWXZ'[len(self.state['bookings']) % 5]}{len(self.state['bookings'])}"
        self.state["bookings"].append(
            {
                "ref": ref,
                "status": "confirmed",
                "legs": legs,
                "passengers": [form[name] for name in names],
                "bags": bags,
                "seat": form["seat"],
                "total": self._fare(query) + BAGS[bags] * len(names) * len(legs),
                "refund": 0,
            }
        )
        self.notify(self.say("Your booking is confirmed.", "预订成功。"))
        return self.go(f"/bookings/{ref}")

    async def bookings(self, request: web.Request) -> web.Response:
        rows = [
            [
                h('<a href="/bookings/{ref}">{ref}</a>', ref=each["ref"]),
                self._route(each),
                self.date(each["legs"][0]["date"]),
                self._status(each),
                self.money(each["total"]),
            ]
            for each in self.state["bookings"]
        ]
        head = (
            self.say("Booking", "订单号"),
            self.say("Route", "航线"),
            self.say("Date", "日期"),
            self.say("Status", "状态"),
            self.say("Paid", "已付"),
        )
        title = self.say("My bookings", "我的订单")
        return self.page(request, title, card(title, table(head, rows, right=1)))

    async def booking(self, request: web.Request) -> web.Response:
        booking = self._booking(request.match_info["ref"])
        seats = self._seats()
        rows = [
            (self.say("Status", "状态"), self._status(booking)),
            *(
                (
                    each["flight"],
                    f"{self._city(each['from'])} → {self._city(each['to'])}, {self.date(each['date'])}",
                )
                for each in booking["legs"]
            ),
            (self.say("Passengers", "乘客"), ", ".join(booking["passengers"])),
            (self.say("Checked bags each", "每人托运行李"), booking["bags"]),
            (self.say("Seat", "座位"), seats[booking["seat"]]),
            (self.say("Paid", "已付"), self.money(booking["total"])),
            (self.say("Refund if cancelled", "取消可退"), self.money(booking["refund"])),
        ]
        ask = self.say(f"Cancel booking {booking['ref']}?", f"确定取消订单 {booking['ref']}？")
        label = self.say("Cancel this booking", "取消此订单")
        cancel = button_form("/bookings/cancel", label, {"ref": booking["ref"]}, ask=ask)
        title = self.say("Booking", "订单") + f" {booking['ref']}"
        open_ = booking["status"] == "confirmed"
        body = (facts(rows), Markup("<p></p>"), cancel if open_ else Markup(""))
        return self.page(request, title, card(title, *body, kind="narrow"))

    async def cancel(self, request: web.Request) -> web.Response:
        booking = self._booking(str((await request.post()).get("ref")))
        booking["status"] = "cancelled"
        refund = self.money(booking["refund"])
        self.notify(self.say(f"Cancelled. You get back {refund}.", f"已取消，退款 {refund}。"))
        return self.go(f"/bookings/{booking['ref']}")

    async def fees(self, request: web.Request) -> web.Response:
        rows = [(self.of(fee["name"]), self.money(fee["cents"])) for fee in self.data["fees"]]
        title = self.say("Baggage fees, each way", "行李费用（单程）")
        head = (self.say("Item", "项目"), self.say("Fee", "费用"))
        return self.page(request, title, card(title, table(head, rows, right=1), kind="narrow"))

    def _booking(self, ref: str) -> JsonObject:
        for booking in self.state["bookings"]:
            if booking["ref"] == ref:
                return cast(JsonObject, booking)
        raise web.HTTPNotFound

    def _people(self, query: Mapping[str, str]) -> int:
        text = query.get("people", "1")
        return min(int(text), 4) if text.isdecimal() and int(text) else 1

    def _flights(self, query: Mapping[str, str]) -> list[tuple[Flight, str, str, str]]:
        """The flights that were chosen, with origin, target and date."""
        origin, target = query.get("from", ""), query.get("to", "")
        legs = [(query.get("out"), origin, target, query.get("date", ""))]
        if query.get("back"):
            legs.append((query.get("ret"), target, origin, query["back"]))
        return [
            (flight, start, end, day)
            for number, start, end, day in legs
            for flight in flights(start, end, date.fromisoformat(day))
            if flight.number == number
        ]

    def _legs(self, query: Mapping[str, str]) -> list[JsonObject]:
        if self._problem(query):
            return []
        return [
            {"flight": flight.number, "from": start, "to": end, "date": day}
            for flight, start, end, day in self._flights(query)
        ]

    def _fare(self, query: Mapping[str, str]) -> int:
        return sum(each[0].price for each in self._flights(query)) * self._people(query)

    def _seats(self) -> dict[str, str]:
        return {
            "aisle": self.say("Aisle", "靠走道"),
            "window": self.say("Window", "靠窗"),
            "any": self.say("No preference", "不限"),
        }

    def _route(self, booking: JsonObject) -> str:
        first = booking["legs"][0]
        arrow = "⇄" if len(booking["legs"]) > 1 else "→"
        return f"{self._city(first['from'])} {arrow} {self._city(first['to'])}"

    def _status(self, booking: JsonObject) -> Markup:
        if booking["status"] == "confirmed":
            return tag(self.say("Confirmed", "已确认"), "good")
        return tag(self.say("Cancelled", "已取消"), "bad")

    def _passengers(
        self,
        request: web.Request,
        query: Mapping[str, str],
        form: Mapping[str, str],
        errors: Mapping[str, str],
    ) -> web.Response:
        legs = self._legs(query)
        if not legs:
            raise web.HTTPNotFound
        bags = {str(n): f"{n} ({self.money(price)})" for n, price in enumerate(BAGS)}
        fields = [
            field(
                f"name{n}",
                self.say(f"Passenger {n}, full name", f"乘客{n}姓名"),
                form.get(f"name{n}", ""),
                errors.get(f"name{n}", ""),
            )
            for n in range(1, self._people(query) + 1)
        ]
        rows = [
            (
                each["flight"],
                f"{self._city(each['from'])} → {self._city(each['to'])}, {self.date(each['date'])}",
            )
            for each in legs
        ]
        total = (self.say("Flights", "机票合计"), self.money(self._fare(query)))
        title = self.say("Passengers", "乘客信息")
        body = h(
            PASSENGERS,
            title=title,
            fields=fields,
            bags=select(
                "bags", self.say("Checked bags each", "每人托运行李"), bags, form.get("bags", "0")
            ),
            seat=choices(
                "seat",
                self.say("Seat", "座位"),
                self._seats(),
                form.get("seat"),
                errors.get("seat", ""),
            ),
            facts=facts([*rows, total]),
            book=self.part(
                "book", h("<button>{text}</button>", text=self.say("Book now", "立即预订"))
            ),
        )
        return self.page(request, title, body, status=422 if errors else 200)


PASSENGERS = """<form method="post" class="columns">
<div class="wide card"><h1>{title}</h1><div class="two">{fields}</div>
<div class="two">{bags}{seat}</div></div>
<div class="side card">{facts}<p></p>{book}</div>
</form>"""
