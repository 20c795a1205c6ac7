"""A real Chromium against pages that do each of the things that pages do."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from support.pages import Handler, browser_task, needs_chromium, serve, titled
from support.toys import NoSandbox

from environments.browser_use.environment import BrowserUse
from environments.browser_use.observation import size
from environments.browser_use.viewport import Limits
from environments.browser_use.world import BrowserWorld
from rollout.errors import EnvironmentFault
from rollout.types import JsonObject, ToolReply

pytestmark = [pytest.mark.asyncio(loop_scope="module"), needs_chromium()]

PATIENT = Limits(call=120, navigation=60, settle=20, probe=30, screenshot=60, locate=20)
"""For a busy machine: what has to happen happens."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def environment() -> AsyncIterator[BrowserUse]:
    environment = BrowserUse(limits=PATIENT)
    await environment.prepare()
    yield environment
    await environment.close()


class Hand:
    """Acts on what it can name."""

    def __init__(self, world: BrowserWorld, base: str) -> None:
        self.world, self.base = world, base

    async def __call__(self, tool: str, target: str = "", **arguments: Any) -> ToolReply:
        point = await self.world.locate(target) if target else {}
        return await self.world.call(f"browser_{tool}", {**point, **arguments})

    async def do(self, tool: str, target: str = "", **arguments: Any) -> JsonObject:
        reply = await self(tool, target, **arguments)
        assert reply.status == 200, reply.body
        body: JsonObject = reply.body
        return body

    async def fails(self, tool: str, target: str = "", **arguments: Any) -> str:
        reply = await self(tool, target, **arguments)
        assert reply.status == 409
        assert size(reply.images[0].data) == (1280, 720)
        return str(reply.body["error"])

    async def sees(self, title: str) -> None:
        """Look until the title is this: frames of other sites are other processes."""
        while (await self.do("screenshot"))["title"] != title:
            pass

    def hurry(self, **limits: float) -> None:
        """Wait no longer than this from now on."""
        tabs = self.world.tabs
        tabs.limits = tabs.activity.limits = replace(tabs.limits, **limits)

    async def snapshot(self) -> JsonObject:
        return await self.world.snapshot(NoSandbox())


@asynccontextmanager
async def browsing(
    environment: BrowserUse, pages: str | dict[str, str | Handler], **fields: Any
) -> AsyncIterator[Hand]:
    """A world whose start page is the first of the pages."""
    served = {"/": titled("Start", pages)} if isinstance(pages, str) else pages
    async with serve(served) as base:
        task = browser_task(f"{base}/", **fields)
        async with environment.open(task, 0) as world:
            assert isinstance(world, BrowserWorld)
            yield Hand(world, base)


def deserted() -> str:
    """An address where nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"


def setting_title(event: str, value: str) -> str:
    return f"""on{event}="document.title = {value}" """


async def test_a_reply_shows_the_page(environment: BrowserUse) -> None:
    async with browsing(environment, "hello") as hand:
        reply = await hand("screenshot")
        assert reply.status == 200
        assert reply.body == {
            "url": f"{hand.base}/",
            "title": "Start",
            "tab": 0,
            "tabs": [{"index": 0, "title": "Start", "url": f"{hand.base}/"}],
            "events": [],
        }
        (image,) = reply.images
        assert image.media_type == "image/png"
        assert size(image.data) == (1280, 720)
        assert (await hand.snapshot()) == {
            "site": {},
            "steps": [{"tool_call": 0, "url": f"{hand.base}/", "title": "Start"}],
            "tabs": reply.body["tabs"],
            "downloads": [],
            "blocked": "",
            "start": f"{hand.base}/",
        }


async def test_calls_that_make_no_sense(environment: BrowserUse) -> None:
    async with browsing(environment, "hello") as hand:
        assert (await hand("fly")).status == 404
        reply = await hand("click", x=640, y=360)
        assert reply.status == 422
        assert "<= 1.0" in reply.body["error"]
        assert reply.images == ()
        assert (await hand("screenshot")).status == 200


async def test_clicks_of_each_kind(environment: BrowserUse) -> None:
    page = f"""<button {setting_title("click", "'once'")}
      {setting_title("dblclick", "'twice'")} {setting_title("contextmenu", "'right'")}
      {setting_title("auxclick", "'aux ' + event.button")}>Target</button>
      <p {setting_title("mousemove", "'over'")}>Hover</p>"""
    async with browsing(environment, page) as hand:
        assert (await hand.do("click", "text=Target"))["title"] == "once"
        assert (await hand.do("click", "text=Target", count=2))["title"] == "twice"
        assert (await hand.do("click", "text=Target", button="middle"))["title"] == "aux 1"
        assert (await hand.do("hover", "text=Hover"))["title"] == "over"


async def test_typing(environment: BrowserUse) -> None:
    page = f"""<form action=/sent><input name=q value=old {setting_title("input", "this.value")}></form>
      <textarea placeholder=Notes {setting_title("input", "JSON.stringify(this.value)")}></textarea>"""
    async with browsing(
        environment, {"/": titled("", page), "/sent": "<title>Sent</title>"}
    ) as hand:
        assert (await hand.do("type", "css=input", text="new <Zoë>"))["title"] == "oldnew <Zoë>"
        assert (await hand.do("press", key="ctrl+a"))["events"] == []
        assert (await hand.do("press", key="Delete"))["title"] == ""
        await hand.do("type", "css=input", text="once")
        assert (await hand.do("type", "css=input", text="李", clear=True))["title"] == "李"
        long = "x" * 600
        assert (await hand.do("type", "text=Notes", text=f"a\n{long}"))["title"].startswith(
            '"a\\nxx'
        )
        body = await hand.do("type", "css=input", text="1", enter=True)
        assert body["title"] == "Sent"
        assert body["url"].endswith("/sent?q=%E6%9D%8E1")
        assert "no key" in await hand.fails("press", key="ctrl+nothing")


async def test_scrolling_and_dragging(environment: BrowserUse) -> None:
    page = """<div id=box style="width:200px;height:100px;overflow:auto">
      <div style="height:900px">box</div></div>
      <input type=range min=0 max=100 value=0 style="width:400px" oninput="document.title=this.value">
      <div id=a draggable=true style="width:90px;height:40px">Card</div>
      <div id=b style="width:200px;height:60px" ondragover="event.preventDefault()"
       ondrop="document.title='dropped'">Here</div>
      <div style="height:3000px"></div>
      <script>onscroll=()=>{document.title='page '+scrollY};
      box.onscroll=()=>{document.title='box '+box.scrollTop}</script>"""
    async with browsing(environment, page) as hand:
        start, end = await hand.world.locate("text=Card"), await hand.world.locate("text=Here")
        points = {"from_x": start["x"], "from_y": start["y"], "to_x": end["x"], "to_y": end["y"]}
        assert (await hand.do("drag", **points))["title"] == "dropped"
        slider = await hand.world.locate("css=input")
        left = slider["x"] - 190 / 1280
        points = {"from_x": left, "from_y": slider["y"], "to_x": slider["x"], "to_y": slider["y"]}
        assert 45 <= int((await hand.do("drag", **points))["title"]) <= 55
        assert (await hand.do("scroll", "css=#box", delta_y=0.25))["title"] == "box 180"
        assert (await hand.do("scroll", delta_y=0.5))["title"] == "page 360"
        assert (await hand.do("scroll", delta_y=-1))["title"] == "page 0"


async def test_pages_that_open_tabs(environment: BrowserUse) -> None:
    pages: dict[str, str | Handler] = {
        "/": titled(
            "Start",
            """<a href=/two target=_blank>New tab</a><br>
            <button onclick="window.open('/two', '', 'width=300,height=200')">Pop up</button>
            <button onkeydown="window.open('/two')">By key</button>
            <button onclick="window.open('/shut')">Shut</button>""",
        ),
        "/two": titled("Two", "<button onclick='window.close()'>Close me</button>"),
        "/shut": "<script>close()</script>",
    }
    async with browsing(environment, pages) as hand:
        body = await hand.do("click", "text=New tab")
        assert (body["title"], body["tab"], len(body["tabs"])) == ("Two", 1, 2)
        assert body["events"] == [f"a new tab opened: {hand.base}/two"]
        body = await hand.do("tab", action="close")
        assert (body["title"], body["tab"], len(body["tabs"])) == ("Start", 0, 1)
        reply = await hand("click", "text=Pop up")
        assert reply.body["title"] == "Two"
        assert size(reply.images[0].data) == (1280, 720)
        assert (await hand.do("click", "text=Close me"))["title"] == "Start"
        await hand("click", "text=By key")
        assert (await hand.do("press", key="x"))["title"] == "Two"
        assert (await hand.do("tab", action="focus", index=0))["title"] == "Start"
        assert (await hand.do("click", "text=Shut"))["title"] == "Start"
        assert "no tab 7" in await hand.fails("tab", action="focus", index=7)
        body = await hand.do("tab", action="new")
        assert (body["url"], body["tab"]) == ("about:blank", 2)
        for _ in range(3):
            body = await hand.do("press", key="ctrl+w")
        assert [tab["url"] for tab in body["tabs"]] == ["about:blank"]


async def test_dialogs_are_answered_and_told(environment: BrowserUse) -> None:
    page = """<button onclick="alert('Saved\\nwell')">Alert</button>
      <button onclick="document.title = confirm('Sure?')">Confirm</button>
      <button onclick="document.title = prompt('Name?', 'Ann')">Prompt</button>
      <input><script>onbeforeunload = event => event.preventDefault()</script>"""
    async with browsing(
        environment, {"/": titled("", page), "/next": "<title>Next</title>"}
    ) as hand:
        assert (await hand.do("click", "text=Alert"))["events"] == ["alert, accepted: Saved well"]
        body = await hand.do("click", "text=Confirm")
        assert (body["events"], body["title"]) == (["confirm, accepted: Sure?"], "true")
        body = await hand.do("click", "text=Prompt")
        assert (body["events"], body["title"]) == (["prompt, answered 'Ann': Name?"], "Ann")
        body = await hand.do("goto", url=f"{hand.base}/next")
        assert body["title"] == "Next"
        assert body["events"] == ["the page asked whether to leave it: left"]


async def test_a_dialog_on_the_start_page(environment: BrowserUse) -> None:
    async with browsing(environment, "<script>alert('cookies!')</script>") as hand:
        assert (await hand.do("screenshot"))["events"] == ["alert, accepted: cookies!"]


async def test_downloads(environment: BrowserUse) -> None:
    async def report(request: web.Request) -> web.Response:
        return web.Response(
            body=b"a,b\n" * 100,
            headers={"Content-Disposition": 'attachment; filename="report.csv"'},
        )

    page = titled("Files", "<a href=/report>Report</a><br><a href=/report target=_blank>Tab</a>")
    async with browsing(environment, {"/": page, "/report": report}) as hand:
        body = await hand.do("click", "text=Report")
        assert (body["events"], body["title"]) == (["downloaded report.csv (400 bytes)"], "Files")
        body = await hand.do("goto", url=f"{hand.base}/report")
        assert (body["events"], body["title"]) == (["downloaded report.csv (400 bytes)"], "Files")
        await hand.do("click", "text=Tab")
        assert (await hand.snapshot())["downloads"] == [{"name": "report.csv", "size": 400}] * 3


async def test_uploads(environment: BrowserUse, tmp_path: Path) -> None:
    (tmp_path / "cv").write_bytes(b"Zo\xc3\xab")
    name = "this.files[0].name + ' ' + this.files[0].size"
    page = f"""<input type=file {setting_title("change", name)}>
      <label>Attach<input type=file hidden {setting_title("change", "'label ' + " + name)}></label>
      <button onclick="ask.click()">Choose</button>
      <input type=file id=ask style="display:none" {setting_title("change", "'asked ' + " + name)}>
      <p>Nothing</p>"""
    files = {"docs/cv.txt": str(tmp_path / "cv")}
    async with browsing(environment, page, files=files) as hand:
        assert hand.world.surface.files == {"docs/cv.txt": b"Zo\xc3\xab"}
        upload = {"tool": "upload", "file": "docs/cv.txt"}
        assert (await hand.do(target="css=input", **upload))["title"] == "cv.txt 4"
        assert (await hand.do(target="text=Attach", **upload))["title"] == "label cv.txt 4"
        assert (await hand.do(target="text=Choose", **upload))["title"] == "asked cv.txt 4"
        (event,) = (await hand.do("click", "text=Choose"))["events"]
        assert event.startswith("the page asks for a file")
        assert "nothing at this point" in await hand.fails(target="text=Nothing", **upload)
        error = await hand.fails("upload", "css=input", file="/etc/passwd")
        assert error == "the task has no file '/etc/passwd'; its files: docs/cv.txt"


async def test_lists_of_options(environment: BrowserUse) -> None:
    page = f"""<select {setting_title("change", "this.value")}>
      <option>Red<option value=b>Dark  Blue<option>Light Blue<option disabled>Grey</select>
      <button {setting_title("click", "'clicked'")}>Button</button>"""
    async with browsing(environment, page) as hand:
        (event,) = (await hand.do("click", "css=select"))["events"]
        assert event.endswith("browser_select: Red (chosen) | Dark Blue | Light Blue | Grey")
        assert (await hand.do("click", "text=Button"))["title"] == "clicked"
        assert (await hand.do("select", "css=select", option="dark blue"))["title"] == "b"
        assert (await hand.do("select", "css=select", option="Light"))["title"] == "Light Blue"
        error = await hand.fails("select", "css=select", option="Blue")
        assert error.endswith("the options: Red | Dark Blue | Light Blue | Grey")
        assert "no list" in await hand.fails("select", "text=Button", option="Red")
        await hand.do("click", "css=select")
        assert (await hand.do("press", key="ArrowUp"))["title"] == "b"


async def test_frames(environment: BrowserUse) -> None:
    inner = titled(
        "", "<button onclick='parent.postMessage(1,\"*\")'>Inside</button>"
        "<select onchange='parent.postMessage(this.value,\"*\")'><option>One<option>Two</select>"
    )  # fmt: skip
    async with serve({"/": inner}) as other:
        other = other.replace("127.0.0.1", "other.localhost")
        for source in ("/inner", other):
            page = titled(
                "Outer", f"<p>top</p><iframe src='{source}' style='margin:50px;padding:7px'></iframe>"
                "<script>onmessage = event => { document.title = 'got ' + event.data }</script>"
            )  # fmt: skip
            async with browsing(environment, {"/": page, "/inner": inner}) as hand:
                await hand.do("click", "frame=iframe >> text=Inside")
                await hand.sees("got 1")
                await hand.do("select", "frame=iframe >> css=select", option="Two")
                await hand.sees("got Two")
                hand.hurry(locate=0.0)
                with pytest.raises(LookupError):
                    await hand.world.locate("text=Inside")


async def test_targets_are_what_is_visible(environment: BrowserUse) -> None:
    page = """<p style="display:none">Twin</p><p id=first>Twin</p><p>Twin <b>more</b></p>
      <input type=submit value="Send it"><input placeholder="Search here">
      <select><option>First<option selected>Second</select>
      <div id=host></div><p style="margin-top:2000px">Below</p>
      <script>host.attachShadow({mode:'open'}).innerHTML = '<button>Shadow</button>';
      setTimeout(() => document.body.insertAdjacentHTML('afterbegin', '<p>Late</p>'), 300)</script>"""
    async with browsing(environment, page) as hand:
        locate = hand.world.locate
        assert (await locate("text=Late"))["y"] < 0.1
        assert await locate("text=Twin") == await locate("css=#first")
        assert (await locate("text=more"))["y"] > (await locate("text=Twin"))["y"]
        assert await locate("text=Send it") == await locate("css=input >> nth=0")
        assert await locate("text=Search") == await locate("css=input >> nth=1")
        assert await locate("text=Second") == await locate("css=select")
        await locate("text=Shadow")
        hand.hurry(locate=0.0)
        with pytest.raises(LookupError, match="outside the viewport"):
            await locate("text=Below")
        with pytest.raises(LookupError, match="not a CSS selector"):
            await locate("css=a[")
        hand.hurry(locate=20)
        await hand.do("scroll", delta_y=10)
        await locate("text=Below")


async def test_history(environment: BrowserUse) -> None:
    pages: dict[str, str | Handler] = {
        "/": titled("Start", "<a href=/two>Two</a>"),
        "/two": titled("Two", ""),
    }
    async with browsing(environment, pages) as hand:
        assert await hand.fails("back") == "there is no page to go back to"
        assert (await hand.do("click", "text=Two"))["title"] == "Two"
        assert (await hand.do("back"))["title"] == "Start"
        assert (await hand.do("forward"))["title"] == "Two"
        assert await hand.fails("forward") == "there is no page to go forward to"
        assert (await hand.do("press", key="alt+left"))["title"] == "Start"
        assert (await hand.do("reload"))["title"] == "Start"
        assert (await hand.do("press", key="F5"))["title"] == "Start"


async def test_pages_that_do_not_open(environment: BrowserUse) -> None:
    async def broken(request: web.Request) -> web.Response:
        return web.Response(status=503, text="<title>Sorry</title>", content_type="text/html")

    async def loop(request: web.Request) -> web.Response:
        raise web.HTTPFound("/loop")

    pages: dict[str, str | Handler] = {"/": titled("Start", ""), "/broken": broken, "/loop": loop}
    async with browsing(environment, pages) as hand:
        body = await hand.do("goto", url=f"{hand.base}/broken")
        assert body["events"] == [f"the server answered 503 for {hand.base}/broken"]
        assert "ERR_TOO_MANY_REDIRECTS" in await hand.fails("goto", url=f"{hand.base}/loop")
        assert "ERR_CONNECTION_REFUSED" in await hand.fails("goto", url=deserted())
        assert "not the address" in await hand.fails("goto", url="file:///etc/passwd")
        assert (await hand.do("goto", url=hand.base))["title"] == "Start"


async def test_sockets_that_say_nothing_or_half(environment: BrowserUse) -> None:
    end = asyncio.Event()

    async def silent(request: web.Request) -> web.Response:
        await end.wait()
        return web.Response()

    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html"})
        await response.prepare(request)
        await response.write(b"<title>Half</title><p>first half")
        await end.wait()
        return response

    async def poll(request: web.Request) -> web.Response:
        await end.wait()
        return web.Response()

    links = "<a href=/silent>Silent</a><br><a href=/half>Half</a><br><button>Poll</button>"
    script = "<script>document.querySelector('button').onclick = () => { fetch('/poll') }</script>"
    pages: dict[str, str | Handler] = {
        "/": titled("Start", links + script), "/silent": silent, "/half": half, "/poll": poll,
    }  # fmt: skip
    late = ["the page still loads after 1 s"]
    async with browsing(environment, pages) as hand:
        hand.hurry(settle=1.0)
        assert (await hand.do("click", "text=Poll"))["events"] == late
        assert (await hand.do("screenshot"))["events"] == []
        body = await hand.do("goto", url=f"{hand.base}/half")
        assert (body["title"], body["events"]) == ("Half", late)
        await hand.do("goto", url=hand.base)
        hand.hurry(navigation=2.0)
        silence = "the server did not answer within 2 s"
        assert await hand.fails("goto", url=f"{hand.base}/silent") == silence
        body = await hand.do("click", "text=Silent")
        assert (body["title"], body["events"]) == ("Start", [silence])
        end.set()


def given_up(reply: ToolReply) -> bool:
    """Whether an empty page came in place of one that broke twice."""
    shown = (reply.status, reply.body["url"], len(reply.body["tabs"]))
    return shown == (409, "about:blank", 1) and "was given up" in reply.body["error"]


async def test_a_page_that_hangs_is_opened_again_once(environment: BrowserUse) -> None:
    page = "<button onclick='for(;;);'>Hang</button>"
    async with browsing(environment, page) as hand:
        hand.hurry(call=1, probe=5, screenshot=5)
        reply = await hand("click", "text=Hang")
        assert reply.status == 409
        assert "did not react in time" in reply.body["error"]
        assert any("opened again" in event for event in reply.body["events"])
        assert (reply.body["title"], len(reply.body["tabs"])) == ("Start", 1)
        assert given_up(await hand("click", "text=Hang"))
        hand.hurry(call=120, probe=30)
        assert (await hand.do("goto", url=f"{hand.base}/"))["title"] == "Start"


async def test_a_page_that_hangs_whenever_it_is_opened_is_given_up(environment: BrowserUse) -> None:
    async with browsing(environment, "hello") as hand:
        hand.hurry(call=5, probe=3, screenshot=3)
        assert given_up(await hand("goto", url="data:text/html,<script>for(;;);</script>"))
        assert (await hand.snapshot())["steps"][0]["url"] == "about:blank"


async def test_a_page_that_crashes_is_opened_again_once(environment: BrowserUse) -> None:
    async with browsing(environment, "<p>Fine</p>") as hand:
        tabs = hand.world.tabs

        async def crash() -> None:
            session = await tabs.session(tabs.active)
            crashed = asyncio.Event()
            tabs.active.on("crash", lambda _: crashed.set())
            sending = asyncio.ensure_future(session.send("Page.crash"))
            await crashed.wait()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

        await crash()
        reply = await hand("screenshot")
        assert (reply.body["title"], len(reply.body["tabs"])) == ("Start", 1)
        assert any("opened again" in event for event in reply.body["events"])
        assert (await hand.do("screenshot"))["events"] == []
        await crash()
        assert given_up(await hand("screenshot"))


async def test_walls_are_in_the_snapshot(environment: BrowserUse) -> None:
    wall = titled("Check", "<div data-sitekey=x style='width:300px;height:74px'>I am human</div>")
    pages: dict[str, str | Handler] = {"/": wall, "/in": titled("Inside", "")}
    async with browsing(environment, pages) as hand:
        host = hand.base.removeprefix("http://")
        assert (await hand.snapshot())["blocked"] == f"captcha at {host}"
        await hand.do("goto", url=f"{hand.base}/in")
        assert (await hand.snapshot())["blocked"] == ""


async def test_of_the_built_in_sites_only_the_gate_has_walls(environment: BrowserUse) -> None:
    for sites, start, blocked in [
        (("gate",), "gate:/reports", True),
        (("gate",), "gate:/", False),
        (("shop", "gate"), "shop:/", False),
    ]:
        async with environment.open(browser_task(start, sites=sites), 0) as world:
            assert isinstance(world, BrowserWorld)
            reply = await world.call("browser_screenshot", {})
            gate = reply.body["url"].replace("//shop.", "//gate.").split("/")[2]
            reply = await world.call("browser_goto", {"url": f"http://{gate}/reports"})
            assert "human" in reply.body["title"]
            assert bool((await world.snapshot(NoSandbox()))["blocked"]) == blocked


async def test_a_built_in_site_that_hangs_is_the_environments_fault(
    environment: BrowserUse,
) -> None:
    async with environment.open(browser_task("shop:/", sites=("shop",)), 0) as world:
        assert isinstance(world, BrowserWorld)
        hand = Hand(world, "")
        hand.hurry(call=5, probe=5, screenshot=5)
        hang = "setTimeout(() => { for (;;); })"
        await world.tabs.active.evaluate(hang)
        reply = await hand("screenshot")
        assert any("opened again" in event for event in reply.body["events"])
        await world.tabs.active.evaluate(hang)
        with pytest.raises(
            EnvironmentFault, match=r"built-in site crashes or hangs: http://shop\."
        ):
            await hand("screenshot")


async def test_episodes_share_a_browser_and_nothing_else(environment: BrowserUse) -> None:
    page = """<script>document.cookie = 'n=' + location.hash; localStorage.n = '1';
      document.title = document.cookie</script>"""
    read = "<script>document.title = document.cookie + (localStorage.n ?? '')</script>"
    async with serve({"/": page, "/read": read}) as base:
        async with (
            environment.open(browser_task(f"{base}/#1"), 0) as one,
            environment.open(browser_task(f"{base}/read"), 0) as two,
        ):
            first = await one.call("browser_screenshot", {})
            second = await two.call("browser_reload", {})
            assert first.body["title"] == "n=#1"
            assert second.body["title"] == ""
            assert len(second.body["tabs"]) == 1


async def test_calls_at_the_same_time_are_answered_in_turn(environment: BrowserUse) -> None:
    page = f"<input {setting_title('input', 'this.value')}>"
    async with browsing(environment, page) as hand:
        point = await hand.world.locate("css=input")
        typed = [hand("type", text=letter * 5, **point) for letter in "ab"]
        replies = await asyncio.gather(*typed)
        assert [reply.body["title"] for reply in replies] == ["aaaaa", "aaaaabbbbb"]


async def test_the_language_of_the_task(environment: BrowserUse) -> None:
    page = "<script>document.title = navigator.language</script>"
    async with browsing(environment, page, language="zh") as hand:
        assert (await hand.do("screenshot"))["title"] == "zh-CN"


async def test_a_start_page_that_does_not_open(environment: BrowserUse) -> None:
    with pytest.raises(EnvironmentFault, match="ERR_CONNECTION_REFUSED"):
        async with environment.open(browser_task(deserted()), 0):
            pass


async def test_a_browser_that_dies_ends_its_episodes_and_no_others() -> None:
    environment = BrowserUse(limits=PATIENT)
    try:
        async with browsing(environment, "hello") as hand:
            assert (await hand.do("screenshot"))["title"] == "Start"
            guard = environment.browsers.chromium.process.pid  # type: ignore[attr-defined]
            browser, *_ = Path(f"/proc/{guard}/task/{guard}/children").read_text().split()
            os.kill(int(browser), signal.SIGKILL)
            with pytest.raises(EnvironmentFault, match="crashed or was disconnected"):
                await hand("click", x=0.5, y=0.5)
            with pytest.raises(EnvironmentFault):
                await hand("screenshot")
        async with browsing(environment, "hello") as hand:
            assert (await hand.do("screenshot"))["title"] == "Start"
    finally:
        await environment.close()
