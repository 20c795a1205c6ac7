"""The built-in sites over HTTP: state, validation, faults, and that episodes share nothing."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession, FormData, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult

from environments.browser_use.sites import SITES, Sites, open_sites
from environments.browser_use.sites.markup import Markup, h
from rollout.errors import UsageError
from rollout.types import JsonObject


class Loopback(AbstractResolver):
    """Resolves every name to loopback, as browsers do with `*.localhost`."""

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host="127.0.0.1", port=port, family=2, proto=0, flags=0)
        ]

    async def close(self) -> None:
        pass


class Visitor:
    """Somebody without a browser."""

    def __init__(self, sites: Sites, session: ClientSession) -> None:
        self.sites, self.session = sites, session
        self.status = 0

    async def get(self, start: str) -> str:
        async with self.session.get(self.sites.url(start)) as reply:
            self.status = reply.status
            return await reply.text()

    async def post(self, start: str, data: Any = None, follow: bool = True) -> str:
        url = self.sites.url(start)
        async with self.session.post(url, data=data, allow_redirects=follow) as reply:
            self.status = reply.status
            return await reply.text()

    def state(self, site: str) -> JsonObject:
        state: JsonObject = self.sites.state()[site]
        return state


@asynccontextmanager
async def visit(
    *names: str, seed: int = 0, faults: JsonObject | None = None
) -> AsyncIterator[Visitor]:
    connector = TCPConnector(resolver=Loopback())
    async with open_sites(names, seed, faults or {}) as sites:
        async with ClientSession(connector=connector) as session:
            yield Visitor(sites, session)


def test_markup_escapes_all_but_itself() -> None:
    assert h("<b title='{a}'>{b}</b>", a="'x'", b="<i>") == (
        "<b title='&#x27;x&#x27;'>&lt;i&gt;</b>"
    )
    assert h("{items}{none}{no}", items=[Markup("<i>"), "<"], none=None, no=False) == "<i>&lt;"
    assert h("{price:.2f}", price=3) == "3.00"


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_every_page_of_the_menu_is_there(name: str, language: str) -> None:
    async with visit(name) as visitor:
        first = await visitor.get(f"{name}:/?lang={language}")
        site = SITES[name]()
        site.language = language
        for address, _ in site.menu():
            page = await visitor.get(f"{name}:{address}")
            assert visitor.status == (403 if address == "/reports" else 200), address
            assert site.of(site.brand) in html.unescape(page)
            assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', page)
        assert ("2026年3月12日" in first) == (language == "zh")
        assert ("12 March 2026" in first) == (language == "en")


@pytest.mark.parametrize("name", SITES)
async def test_what_is_not_there_is_not_found(name: str) -> None:
    async with visit(name) as visitor:
        for address in ("/nothing", "/state", "/static/../site.py", "/data/shop.yaml"):
            await visitor.get(f"{name}:{address}")
            assert visitor.status in (403, 404), address


@pytest.mark.parametrize("name", SITES)
def test_a_state_handed_out_is_a_copy(name: str) -> None:
    site = SITES[name]()
    site.snapshot().clear()
    assert site.snapshot() == site.state != {}


async def test_nothing_comes_from_elsewhere() -> None:
    async with visit("shop") as visitor:
        async with visitor.session.get(visitor.sites.url("shop:/")) as reply:
            assert reply.headers["Content-Security-Policy"].startswith("default-src 'self'")


async def test_episodes_share_nothing() -> None:
    async with visit("shop") as one, visit("shop") as other:
        await one.post("shop:/cart/add", {"id": "K101", "quantity": "2"})
        assert one.state("shop")["cart"] == [{"id": "K101", "colour": "white", "quantity": 2}]
        assert other.state("shop")["cart"] == []


async def test_a_host_has_its_own_site_alone() -> None:
    async with visit("shop", "news") as visitor:
        assert "Harbor" in await visitor.get("shop:/")
        assert "Meridian" in await visitor.get("news:/")
        async with visitor.session.get(f"http://other.localhost:{visitor.sites.port}/") as reply:
            assert reply.status == 404


async def test_addresses() -> None:
    async with visit("shop") as visitor:
        sites = visitor.sites
        assert sites.url("shop:/cart?a=1") == f"http://shop.localhost:{sites.port}/cart?a=1"
        assert sites.url("https://example.org/x") == "https://example.org/x"
        assert sites.url("about:blank") == "about:blank"
        with pytest.raises(UsageError, match="no site 'news'"):
            sites.url("news:/")


async def test_unknown_names_are_told() -> None:
    with pytest.raises(UsageError, match="did you mean 'shop'"):
        async with visit("shp"):
            pass
    with pytest.raises(UsageError, match=r"faults\.news: no such site"):
        async with visit("shop", faults={"news": {}}):
            pass
    with pytest.raises(UsageError, match="known faults: moved, slow"):
        async with visit("shop", faults={"shop": {"slower": 1}}):
            pass


async def test_shop_filters_exactly() -> None:
    async with visit("shop") as visitor:
        page = await visitor.get("shop:/search?category=kettles&rating=4&stock=1&sort=cheap")
        names = re.findall(r'class="name" href="/product/(\w+)"', page)
        assert names == ["K102", "K106", "K107", "K103"]
        page = await visitor.get("shop:/search?q=wireless&min=60&max=120&free=1")
        assert re.findall(r"/product/(\w+)", page) == ["H502", "H504", "H505"]
        page = await visitor.get("shop:/search?lang=zh&q=茶壶&max=120")
        assert re.findall(r"/product/(\w+)", page) == ["T204"]
        assert "Nothing matches" in await visitor.get("shop:/search?lang=en&q=zzz")


@pytest.mark.parametrize(
    "form",
    [
        {"id": "L401"},
        {"id": "L403", "quantity": "6"},
        {"id": "K101", "quantity": "-1"},
        {"id": "K101", "colour": "red"},
    ],
)
async def test_shop_sells_only_what_it_has(form: dict[str, str]) -> None:
    async with visit("shop") as visitor:
        await visitor.post("shop:/cart/add", form)
        assert visitor.state("shop")["cart"] == []


async def test_shop_order() -> None:
    async with visit("shop") as visitor:
        await visitor.post("shop:/cart/add", {"id": "L402", "colour": "black"})
        assert "expired" in await visitor.post("shop:/cart/coupon", {"code": "winter20"})
        await visitor.post("shop:/cart/coupon", {"code": "spring10"})
        form = {"name": "A B", "street": "C 1", "postcode": "1", "city": "D", "payment": "card"}
        page = await visitor.post("shop:/checkout", form)
        assert visitor.status == 422
        assert "Please choose" in page
        assert 'value="A B"' in page
        page = await visitor.post("shop:/checkout", form | {"delivery": "express", "gift": "yes"})
        [order] = visitor.state("shop")["orders"]
        assert order["total"] == 3900 - 390 + 990 + 300
        assert order["number"] in page
        assert visitor.state("shop")["cart"] == []


async def test_travel_search_and_booking() -> None:
    async with visit("travel") as visitor:
        for query in (
            "from=Paris&to=Paris&date=2026-04-01",
            "from=Paris&to=Rome&date=2026-04-01",
            "from=Paris&to=Oslo&date=2026-03-11",
            "from=Paris&to=Oslo&date=",
            "from=Paris&to=Oslo&date=2026-04-09&back=2026-04-02",
        ):
            assert "notice bad" in await visitor.get(f"travel:/flights?{query}")
        page = await visitor.get(
            "travel:/flights?from=巴黎&to=vie&date=2026-04-14&stops=0&sort=price"
        )
        assert re.findall(r'class="price">([^<]+)', page)[0] == "$73.00"
        query = "from=CDG&to=VIE&date=2026-04-14&out=AW+538&people=2"
        assert "first and last" in await visitor.post(
            f"travel:/passengers?{query}", {"seat": "any", "name1": "A B"}
        )
        await visitor.post(
            f"travel:/passengers?{query}",
            {"seat": "any", "name1": "A B", "name2": "C D", "bags": "1"},
        )
        booking = visitor.state("travel")["bookings"][2]
        assert booking["total"] == 2 * (7300 + 2500)
        await visitor.post("travel:/bookings/cancel", {"ref": booking["ref"]})
        assert visitor.state("travel")["bookings"][2]["status"] == "cancelled"
        assert visitor.state("travel")["bookings"][0]["status"] == "confirmed"


async def test_forms_permit() -> None:
    person = {"name": "A B", "birth": "1990-02-28", "email": "a@b.example"}
    car = {"plate": "AB-123-CD", "zone": "A", "engine": "hybrid", "start": "2026-04"}
    async with visit("forms") as visitor:
        for wrong in (
            {"birth": "28.2.1990"},
            {"birth": "2010-01-01"},
            {"email": "a@b"},
            {"name": ""},
        ):
            await visitor.post("forms:/permit/1", person | wrong)
            assert visitor.status == 422
        await visitor.post("forms:/permit/1", person)
        for wrong in ({"plate": "ab-123-cd"}, {"zone": "E"}, {"engine": ""}, {"start": "2026-03"}):
            await visitor.post("forms:/permit/2", car | wrong)
            assert visitor.status == 422
        await visitor.post("forms:/permit/2", car)
        for name in ("proof.png", "proof.PDF"):
            form = FormData({"consent": "yes"})
            form.add_field("proof", b"%PDF", filename=name)
            page = await visitor.post("forms:/permit/3", form)
        assert "proof.PDF" in page
        assert "$145.00" in page
        assert visitor.state("forms")["permits"] == []
        await visitor.post("forms:/permit/submit")
        [permit] = visitor.state("forms")["permits"]
        assert permit["proof"]["size"] == 4
        assert (permit["fee"], permit["zone"], permit["birth"]) == (14500, "A", "1990-02-28")


async def test_forms_nothing_is_submitted_before_it_is_filled_in() -> None:
    async with visit("forms") as visitor:
        await visitor.post("forms:/permit/submit")
        assert visitor.state("forms")["permits"] == []


async def test_tracker() -> None:
    async with visit("tracker") as visitor:
        assert "23 issues" in await visitor.get("tracker:/issues")
        assert "5 issues" in await visitor.get("tracker:/issues?label=crash")
        for number in ("107", "113"):
            await visitor.post("tracker:/board/move", {"number": number, "status": "review"})
        assert visitor.status == 409
        issues = {each["number"]: each for each in visitor.state("tracker")["issues"]}
        assert (issues[107]["status"], issues[113]["status"]) == ("review", "todo")
        form = {"status": "done", "priority": "low", "label": "docs", "assignee": "Nobody Here"}
        await visitor.post("tracker:/issues/101", form)
        assert visitor.status == 404
        await visitor.post("tracker:/issues/101", form | {"assignee": "-"})
        issue = visitor.state("tracker")["issues"][0]
        assert (issue["status"], issue["assignee"]) == ("done", "")
        page = await visitor.post("tracker:/issues/101/comment", {"text": "<script>"})
        assert "&lt;script&gt;" in page
        await visitor.post("tracker:/issues/121/delete")
        assert "#121" not in await visitor.get("tracker:/issues?page=3")


async def test_library() -> None:
    async with visit("library") as visitor:
        async with visitor.session.get(visitor.sites.url("library:/download/D03")) as reply:
            assert (
                reply.headers["Content-Disposition"]
                == 'attachment; filename="board-minutes-2026-02.txt"'
            )
        await visitor.post("library:/folders", {"name": "Q2"})
        assert "new name" in await visitor.post("library:/folders", {"name": "Q2"})
        assert "Q2" in await visitor.post("library:/move", {"id": "D03", "folder": "new1"})
        await visitor.post("library:/move", {"id": "D03", "folder": "new2"})
        assert visitor.status == 404
        state = visitor.state("library")
        assert (state["downloaded"], state["folder"]["D03"]) == (["D03"], "new1")
        assert "52.00" in await visitor.get("library:/preview/D06")


async def test_news() -> None:
    async with visit("news") as visitor:
        assert "cookies" in await visitor.get("news:/article/a01")
        page = await visitor.post("news:/consent", {"choice": "necessary", "back": "/article/a01"})
        assert "5.6 per cent" in page
        assert 'class="cookies"' not in page
        await visitor.post("news:/consent", {"choice": "all", "back": "//elsewhere"}, follow=False)
        assert visitor.status == 303
        seen = await visitor.get("news:/more?after=18")
        assert re.findall(r"/article/(\w+)", seen) == ["a19", "a20", "a21", "a22"]
        page = await visitor.get("news:/search?section=business&since=2026-03-01&until=2026-03-10")
        assert "3 results" in page
        await visitor.post("news:/newsletters", {"email": "a@b", "letter": "science"})
        assert visitor.state("news")["subscriptions"] == []


async def test_gate_lets_nobody_in() -> None:
    async with visit("gate") as visitor:
        assert "captcha failed" in await visitor.post("gate:/verify")
        assert "wrong" in await visitor.post("gate:/login", {"email": "a", "password": "b"})
        assert "checking your connection" in await visitor.get("gate:/status")
        assert visitor.state("gate") == {"checks": 1, "logins": 1, "status_seen": False}
        assert "14 March" in await visitor.get("gate:/status?passed=1")


async def test_fault_a_write_is_lost_once() -> None:
    faults = {"shop": {"lost": ["/cart/add"]}}
    async with visit("shop", faults=faults) as visitor:
        form = {"id": "K101"}
        assert "Added to your cart" in await visitor.post("shop:/cart/add", form)
        assert visitor.state("shop")["cart"] == []
        await visitor.post("shop:/cart/add", form)
        assert len(visitor.state("shop")["cart"]) == 1


async def test_fault_a_form_that_is_only_looked_at_is_not_lost_yet() -> None:
    async with visit("forms", faults={"forms": {"lost": ["/report"]}}) as visitor:
        await visitor.get("forms:/report")
        form = {
            "kind": "tree",
            "urgency": "low",
            "place": "A",
            "details": "B" * 10,
            "email": "a@b.example",
        }
        assert "NB-3107" in await visitor.post("forms:/report", form)
        assert visitor.state("forms")["reports"] == []
        await visitor.post("forms:/report", form)
        assert len(visitor.state("forms")["reports"]) == 1


async def test_fault_an_error_once() -> None:
    async with visit("shop", faults={"shop": {"broken": ["/help"]}}) as visitor:
        assert "error 500" in await visitor.get("shop:/help")
        assert visitor.status == 500
        assert "45 days" in await visitor.get("shop:/help")


async def test_fault_a_part_is_absent_at_first() -> None:
    async with visit("shop", faults={"shop": {"absent": ["checkout"]}}) as visitor:
        await visitor.post("shop:/cart/add", {"id": "K101"})
        assert "Go to checkout" not in await visitor.get("shop:/cart")
        assert "Go to checkout" in await visitor.get("shop:/cart")


async def test_fault_moved_by_seed() -> None:
    async def layout(seed: int, moved: bool) -> str:
        async with visit("shop", seed=seed, faults={"shop": {"moved": moved}}) as visitor:
            [found] = re.findall(
                r'class="shop (layout-\d)".*--shift: (\d+)px', await visitor.get("shop:/")
            )
            return " ".join(found)

    assert await layout(1, False) == await layout(2, False) == "layout-0 0"
    assert await layout(1, True) == await layout(1, True)
    assert len({await layout(seed, True) for seed in range(8)}) > 3


async def test_fault_slow_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("environments.browser_use.sites.site.asyncio", SimpleNamespace(sleep=sleep))
    async with visit("shop", faults={"shop": {"slow": 2.5}}) as visitor:
        for _ in range(2):
            await visitor.get("shop:/help")
    assert waits == [2.5, 0.0]
