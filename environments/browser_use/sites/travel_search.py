"""Looking for flights: the search form with its calendar, and the flights of a day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.site import MONTHS, TODAY, Handler, Site, load_data
from environments.browser_use.sites.timetable import Flight, flights
from environments.browser_use.sites.widgets import choices, hidden, options, select

__all__ = ["FlightSearch"]

LATEST = TODAY + timedelta(days=330)


class FlightSearch(Site):
    """From cities and dates to flights; nothing here changes the site's state."""

    def __init__(self, *args: Any) -> None:
        self.data = load_data("travel")
        self.cities: dict[str, dict[str, str]] = self.data["cities"]
        super().__init__(*args)

    def routes(self) -> Mapping[str, Handler]:
        return {"GET /": self.home, "GET /flights": self.results}

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

    def _months(self) -> list[str]:
        return [self.say(name, f"{n}月") for n, name in enumerate(MONTHS, 1)]

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
