"""Skylark: flights with a calendar, filters, passengers, and bookings that can be cancelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any, cast
from urllib.parse import urlencode

from aiohttp import web

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.site import MONTHS, TODAY, Handler, Site, load_data
from environments.browser_use.sites.timetable import Flight, flights
from environments.browser_use.sites.widgets import (
    button_form,
    card,
    choices,
    facts,
    field,
    hidden,
    options,
    select,
    table,
    tag,
)
from rollout.types import JsonObject

__all__ = ["Travel"]

BAGS = (0, 2500, 6500)
"""Price of so many checked bags, cents a person."""
LATEST = TODAY + timedelta(days=330)
SEATS = ("aisle", "window", "any")


class Travel(Site):
    """An airline portal; the visitor is logged in and has two bookings."""

    name = "travel"
    brand = {"en": "Skylark Flights", "zh": "云雀航空旅行"}
    accent = "#1d4f9f"
    script = "travel.js"

    def __init__(self, *args: Any) -> None:
        self.data = load_data("travel")
        self.cities: dict[str, dict[str, str]] = self.data["cities"]
        super().__init__(*args)

    def initial(self) -> JsonObject:
        return {"bookings": [dict(each) for each in self.data["bookings"]]}

    def menu(self) -> Iterator[tuple[str, str]]:
        yield "/", self.say("Search", "搜索航班")
        yield "/bookings", self.say("My bookings", "我的订单")
        yield "/fees", self.say("Baggage", "行李规定")

    def routes(self) -> Mapping[str, Handler]:
        return {
            "GET /": self.home,
            "GET /flights": self.results,
            "GET /passengers": self.passengers,
            "POST /passengers": self.book,
            "GET /bookings": self.bookings,
            "GET /bookings/{ref}": self.booking,
            "POST /bookings/cancel": self.cancel,
            "GET /fees": self.fees,
        }

    async def home(self, request: web.Request) -> web.Response:
        return self._home(request, dict(request.query))

    async def results(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        problem = self._problem(query)
        if problem:
            self.notify(problem, "bad")
            return self._home(request, query)
        query |= {key: self._code(query[key]) for key in ("from", "to")}
        returning = bool(query.get("out"))
        origin, target = (query["to"], query["from"]) if returning else (query["from"], query["to"])
        day = date.fromisoformat(query["back"] if returning else query["date"])
        found = flights(origin, target, day)
        if query.get("stops") == "0":
            found = [each for each in found if not each.stops]
        keys = {"price": "price", "time": "minutes"}
        found.sort(key=lambda each: getattr(each, keys.get(query.get("sort", ""), "departs")))
        heading = f"{self._city(origin)} → {self._city(target)}, {self.date(day, weekday=True)}"
        return self.page(
            request,
            self.say("Flights", "航班"),
            h("<h1>{leg}{heading}</h1>", leg=self._leg(query), heading=heading),
            self._filters(query),
            *(self._flight(each, query) for each in found),
        )

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

    def _city(self, code: str) -> str:
        return self.of(self.cities[code])

    def _code(self, text: str) -> str:
        """The airport that a text names, by code or in either language; empty for none."""
        wanted = text.strip().casefold()
        for code, names in self.cities.items():
            if wanted in (code.casefold(), names["en"].casefold(), names["zh"]):
                return code
        return ""

    def _problem(self, query: Mapping[str, str]) -> str:
        """What is wrong with a search; empty when it can be answered."""
        codes = [self._code(query.get(key, "")) for key in ("from", "to")]
        if not all(codes) or codes[0] == codes[1]:
            return self.say(
                "Choose two different cities that we fly to.", "请选择两个不同的通航城市。"
            )
        days = [query.get("date", ""), *([query["back"]] if query.get("back") else [])]
        try:
            dates = [date.fromisoformat(day) for day in days]
        except ValueError:
            return self.say("Choose a date.", "请选择日期。")
        if not all(TODAY <= day <= LATEST for day in dates) or dates != sorted(dates):
            return self.say("Choose dates from today on, in order.", "请按顺序选择今天以后的日期。")
        return ""

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

    def _months(self) -> list[str]:
        return [self.say(name, f"{n}月") for n, name in enumerate(MONTHS, 1)]

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

    def _leg(self, query: Mapping[str, str]) -> str:
        if not query.get("back"):
            return ""
        return (
            self.say("Return: ", "返程：") if query.get("out") else self.say("Outbound: ", "去程：")
        )

    def _home(self, request: web.Request, query: Mapping[str, str]) -> web.Response:
        cities = [f"{self.of(names)}" for names in self.cities.values()]
        trip = {"one": self.say("One way", "单程"), "return": self.say("Return", "往返")}
        return self.page(
            request,
            self.say("Search flights", "搜索航班"),
            h(
                HERO,
                title=self.say("Where to next?", "下一站去哪儿？"),
                text=self.say("Eight cities, three airlines.", "八座城市，三家航空公司。"),
            ),
            h(
                SEARCH,
                cities="|".join(cities),
                today=TODAY.isoformat(),
                months=",".join(self._months()),
                days=self.say("Mo,Tu,We,Th,Fr,Sa,Su", "一,二,三,四,五,六,日"),
                trip=choices("trip", self.say("Trip", "行程"), trip, query.get("trip", "one")),
                origin_label=self.say("From", "出发地"),
                origin=query.get("from", ""),
                target_label=self.say("To", "目的地"),
                target=query.get("to", ""),
                date_label=self.say("Departure", "出发日期"),
                date=query.get("date", ""),
                back_label=self.say("Return", "返程日期"),
                back=query.get("back", ""),
                off=Markup("" if query.get("trip") == "return" else " disabled"),
                people=select(
                    "people",
                    self.say("Passengers", "乘客人数"),
                    {str(n): str(n) for n in range(1, 5)},
                    query.get("people", "1"),
                ),
                search=self.say("Search flights", "搜索航班"),
            ),
        )

    def _filters(self, query: Mapping[str, str]) -> Markup:
        stops = {"": self.say("Any", "不限"), "0": self.say("Nonstop only", "仅直飞")}
        orders = {
            "": self.say("Departure", "出发时间"),
            "price": self.say("Price", "价格"),
            "time": self.say("Duration", "飞行时长"),
        }
        return h(
            FILTERS,
            kept=hidden({k: v for k, v in query.items() if k not in ("stops", "sort", "lang")}),
            stops=self.say("Stops", "经停"),
            stop_options=options(stops, query.get("stops", "")),
            sort=self.say("Sort by", "排序"),
            sort_options=options(orders, query.get("sort", "")),
        )

    def _flight(self, flight: Flight, query: Mapping[str, str]) -> Markup:
        kept = {key: value for key, value in query.items() if key not in ("lang", "stops", "sort")}
        if query.get("out"):
            address = f"/passengers?{urlencode(kept | {'ret': flight.number})}"
        elif query.get("back"):
            address = f"/flights?{urlencode(kept | {'out': flight.number})}"
        else:
            address = f"/passengers?{urlencode(kept | {'out': flight.number})}"
        nonstop = self.say("Nonstop", "直飞")
        return h(
            FLIGHT,
            departs=_clock(flight.departs),
            arrives=_clock(flight.arrives),
            number=flight.number,
            airline=self.of(self.data["airlines"][flight.number[:2]]),
            stops=self.say("1 stop", "经停1次") if flight.stops else nonstop,
            minutes=f"{flight.minutes // 60} h {flight.minutes % 60:02d}",
            price=self.money(flight.price),
            url=address,
            select=self.say("Select", "选择"),
        )

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


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


HERO = '<section class="hero"><h1>{title}</h1><span>{text}</span></section>'

SEARCH = """<form class="card" action="/flights" data-cities="{cities}" data-today="{today}"
 data-months="{months}" data-days="{days}">
{trip}
<div class="two">
<label class="field"><span>{origin_label}</span>
<input name="from" value="{origin}" class="city" autocomplete="off"></label>
<label class="field"><span>{target_label}</span>
<input name="to" value="{target}" class="city" autocomplete="off"></label>
</div>
<div class="three">
<div class="field"><label class="field"><span>{date_label}</span>
<input name="date" value="{date}" class="day" readonly></label></div>
<div class="field"><label class="field"><span>{back_label}</span>
<input name="back" value="{back}" class="day" readonly{off}></label></div>
{people}
</div>
<button>{search}</button>
</form>"""

FILTERS = """<form class="row" action="/flights">{kept}
<label>{stops} <select name="stops" data-auto>{stop_options}</select></label>
<label>{sort} <select name="sort" data-auto>{sort_options}</select></label>
</form><p></p>"""

FLIGHT = """<div class="card flight"><b>{departs} – {arrives}</b>
<span>{airline} <span class="soft">{number}</span></span><span>{stops}</span>
<span class="soft">{minutes}</span>
<span class="number"><span class="price">{price}</span> <a class="button" href="{url}">{select}</a></span>
</div>"""

PASSENGERS = """<form method="post" class="columns">
<div class="wide card"><h1>{title}</h1><div class="two">{fields}</div>
<div class="two">{bags}{seat}</div></div>
<div class="side card">{facts}<p></p>{book}</div>
</form>"""
