"""Northbridge: a town's online services, with forms of one page and of several."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from aiohttp import web
from aiohttp.web_request import FileField

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.site import TODAY, Handler, Site, load_data
from environments.browser_use.sites.widgets import (
    card,
    choice,
    choices,
    facts,
    field,
    select,
    table,
)
from rollout.types import JsonObject

__all__ = ["Forms"]

PLATE = re.compile(r"[A-Z]{2}-\d{3}-[A-Z]{2}")
MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", re.I)
STEPS = 3


class Forms(Site):
    """Reports of street damage, parking permits, and the requests that were sent."""

    name = "forms"
    brand = {"en": "Town of Northbridge", "zh": "北桥镇政务服务"}
    accent = "#7a3b12"

    def __init__(self, *args: Any) -> None:
        self.data = load_data("forms")
        super().__init__(*args)

    def initial(self) -> JsonObject:
        return {"reports": [], "permits": [], "draft": {}}

    def menu(self) -> Iterator[tuple[str, str]]:
        yield "/report", self.say("Report a problem", "市政报修")
        yield "/permit/1", self.say("Parking permit", "停车证")
        yield "/fees", self.say("Fees", "收费标准")
        yield "/requests", self.say("My requests", "我的申请")

    def routes(self) -> Mapping[str, Handler]:
        return {
            "GET /": self.home,
            "GET /fees": self.fees,
            "GET /report": self.report,
            "POST /report": self.send_report,
            "GET /permit/{step:[123]}": self.permit,
            "POST /permit/{step:[123]}": self.fill_permit,
            "GET /permit/review": self.review,
            "POST /permit/submit": self.submit,
            "GET /requests": self.requests,
        }

    async def home(self, request: web.Request) -> web.Response:
        title = self.say("What can we do for you?", "您需要办理什么业务？")
        tile = '<a class="card" href="{url}"><h2>{name}</h2>{text}</a>'
        tiles = [
            h(tile, url=url, name=self.of(each["name"]), text=self.of(each["text"]))
            for url, each in self.data["services"].items()
        ]
        return self.page(
            request, title, h('<h1>{t}</h1><div class="two">{tiles}</div>', t=title, tiles=tiles)
        )

    async def fees(self, request: web.Request) -> web.Response:
        title = self.say("Parking permits: fees a year", "停车证收费标准（每年）")
        head = (
            self.say("Zone", "区域"),
            self.say("Petrol or diesel", "燃油车"),
            self.say("Hybrid", "混合动力"),
            self.say("Electric", "纯电动"),
        )
        rows = [
            [self._zones()[zone], *(self.money(cents) for cents in prices)]
            for zone, prices in self.data["fees"].items()
        ]
        return self.page(request, title, card(title, table(head, rows, right=3), kind="narrow"))

    async def report(self, request: web.Request) -> web.Response:
        return self._report(request, {}, {})

    async def send_report(self, request: web.Request) -> web.Response:
        form = await _texts(request)
        need = self.say("Please fill this in.", "请填写此项。")
        errors = {key: need for key in ("kind", "urgency", "place") if not form.get(key)}
        if len(form.get("details", "")) < 10:
            errors["details"] = self.say("At least 10 characters, please.", "请至少填写10个字。")
        if not MAIL.fullmatch(form.get("email", "")):
            errors["email"] = self.say("This is no e-mail address.", "邮箱格式不正确。")
        if errors:
            return self._report(request, form, errors)
        keys = ("kind", "urgency", "place", "details", "email")
        number = f"NB-{3107 + len(self.state['reports'])}"
        self.state["reports"].append({key: form[key] for key in keys} | {"number": number})
        text = self.say(
            f"Thank you. Your report has the number {number}.", f"已提交，受理编号为 {number}。"
        )
        self.notify(text)
        return self.go("/report")

    async def permit(self, request: web.Request) -> web.Response:
        return self._permit(request, int(request.match_info["step"]), self.state["draft"], {})

    async def fill_permit(self, request: web.Request) -> web.Response:
        step = int(request.match_info["step"])
        form: JsonObject = await _texts(request)
        errors = {1: self._check_person, 2: self._check_car, 3: self._check_proof}[step](form)
        if step == STEPS:
            upload = (await request.post()).get("proof")
            if isinstance(upload, FileField) and upload.filename:
                form["proof"] = _stored(upload)
            form.setdefault("proof", self.state["draft"].get("proof", {}))
            if not str(form["proof"].get("name", "")).lower().endswith(".pdf"):
                errors["proof"] = self.say("Please attach a PDF file.", "请上传PDF文件。")
        if errors:
            return self._permit(request, step, {**self.state["draft"], **form}, errors)
        self.state["draft"].update(form)
        return self.go(f"/permit/{step + 1}" if step < STEPS else "/permit/review")

    async def review(self, request: web.Request) -> web.Response:
        draft = self.state["draft"]
        if "proof" not in draft:
            return self.go("/permit/1")
        title = self.say("Check your application", "核对申请信息")
        labels = self._labels()
        rows = [(labels[key], draft[key]) for key in ("name", "birth", "email", "plate")]
        rows += [
            (labels["zone"], self._zones()[draft["zone"]]),
            (labels["engine"], self._engines()[draft["engine"]]),
            (labels["start"], draft["start"]),
            (labels["proof"], draft["proof"]["name"]),
            (self.say("Fee", "费用"), self.money(self._fee(draft))),
        ]
        send = h(
            '<p></p><form method="post" action="/permit/submit" class="row">'
            '<button>{submit}</button><a href="/permit/1">{change}</a></form>',
            submit=self.say("Submit application", "提交申请"),
            change=self.say("Change something", "修改"),
        )
        return self.page(
            request, title, self._steps(4), card(title, facts(rows), send, kind="narrow")
        )

    async def submit(self, request: web.Request) -> web.Response:
        if "proof" not in self.state["draft"]:
            return self.go("/permit/1")
        number = f"PP-{5520 + len(self.state['permits'])}"
        fee = self._fee(self.state["draft"])
        self.state["permits"].append({**self.state["draft"], "number": number, "fee": fee})
        self.state["draft"] = {}
        self.notify(
            self.say(
                f"Received. Your application has the number {number}.",
                f"已受理，申请编号为 {number}。",
            )
        )
        return self.go("/requests")

    async def requests(self, request: web.Request) -> web.Response:
        kinds = self._kinds()
        rows = [
            [each["number"], kinds[each["kind"]], each["place"]] for each in self.state["reports"]
        ]
        rows += [
            [each["number"], self.say("Parking permit", "停车证"), each["plate"]]
            for each in self.state["permits"]
        ]
        title = self.say("My requests", "我的申请") + f" ({len(rows)})"
        head = (
            self.say("Number", "编号"),
            self.say("Subject", "事项"),
            self.say("Details", "详情"),
        )
        nothing = h(
            "<p>{text}</p>", text=self.say("You have sent nothing yet.", "暂无已提交的申请。")
        )
        return self.page(request, title, card(title, table(head, rows) if rows else nothing))

    def _zones(self) -> dict[str, str]:
        return {key: self.of(name) for key, name in self.data["zones"].items()}

    def _kinds(self) -> dict[str, str]:
        return {key: self.of(name) for key, name in self.data["kinds"].items()}

    def _engines(self) -> dict[str, str]:
        return {
            "petrol": self.say("Petrol or diesel", "燃油车"),
            "hybrid": self.say("Hybrid", "混合动力"),
            "electric": self.say("Electric", "纯电动"),
        }

    def _labels(self) -> dict[str, str]:
        return {key: self.of(name) for key, name in self.data["labels"].items()}

    def _fee(self, draft: JsonObject) -> int:
        fee: int = self.data["fees"][draft["zone"]][list(self._engines()).index(draft["engine"])]
        return fee

    def _check_person(self, form: JsonObject) -> dict[str, str]:
        errors = {}
        if len(form.get("name", "")) < 2:
            errors["name"] = self.say("Please fill this in.", "请填写此项。")
        try:
            adult = (
                date.fromisoformat(form.get("birth", "")).replace(year=TODAY.year - 17)
                and int(form["birth"][:4]) <= TODAY.year - 18
            )
        except ValueError:
            errors["birth"] = self.say("Write it as YYYY-MM-DD.", "请按 YYYY-MM-DD 填写。")
        else:
            if not adult:
                errors["birth"] = self.say("Applicants must be 18 or older.", "申请人须年满18岁。")
        if not MAIL.fullmatch(form.get("email", "")):
            errors["email"] = self.say("This is no e-mail address.", "邮箱格式不正确。")
        return errors

    def _check_car(self, form: JsonObject) -> dict[str, str]:
        errors = {}
        if not PLATE.fullmatch(form.get("plate", "")):
            errors["plate"] = self.say("Write it like AB-123-CD.", "格式应为 AB-123-CD。")
        for key, known in (("zone", self._zones()), ("engine", self._engines())):
            if form.get(key) not in known:
                errors[key] = self.say("Please choose.", "请选择。")
        if form.get("start") not in self.data["months"]:
            errors["start"] = self.say("Please choose.", "请选择。")
        return errors

    def _check_proof(self, form: JsonObject) -> dict[str, str]:
        if form.get("consent") == "yes":
            return {}
        return {"consent": self.say("We need your consent.", "需要您的同意。")}

    def _report(
        self, request: web.Request, form: Mapping[str, str], errors: Mapping[str, str]
    ) -> web.Response:
        labels = self._labels()
        urgency = {
            "low": self.say("Can wait", "不紧急"),
            "normal": self.say("This week, please", "本周内处理"),
            "danger": self.say("Dangerous", "有安全隐患"),
        }
        kinds = {"": self.say("Please choose", "请选择"), **self._kinds()}
        title = self.say("Report a problem", "市政报修")
        body = h(
            '<form method="post" action="/report">{top}<div class="two">{left}</div>{details}'
            "<button>{send}</button></form>",
            top=h(
                '<div class="two">{a}{b}</div>',
                a=select(
                    "kind", labels["kind"], kinds, form.get("kind", ""), errors.get("kind", "")
                ),
                b=choices(
                    "urgency",
                    labels["urgency"],
                    urgency,
                    form.get("urgency"),
                    errors.get("urgency", ""),
                ),
            ),
            left=[
                field(key, labels[key], form.get(key, ""), errors.get(key, ""))
                for key in ("place", "email")
            ],
            details=field(
                "details",
                labels["details"],
                form.get("details", ""),
                errors.get("details", ""),
                kind="textarea",
            ),
            send=self.say("Send report", "提交"),
        )
        return self.page(
            request, title, card(title, body, kind="narrow"), status=422 if errors else 200
        )

    def _permit(
        self, request: web.Request, step: int, form: JsonObject, errors: Mapping[str, str]
    ) -> web.Response:
        title = self.say("Resident parking permit", "居民停车证申请")
        fields = {1: self._person, 2: self._car, 3: self._proof}[step](form, errors)
        body = h(
            '<form method="post" enctype="multipart/form-data">{fields}<button>{next}</button></form>',
            fields=fields,
            next=self.say("Continue", "下一步"),
        )
        return self.page(
            request,
            title,
            self._steps(step),
            card(title, body, kind="narrow"),
            status=422 if errors else 200,
        )

    def _steps(self, current: int) -> Markup:
        names = (
            self.say("1 You", "1 申请人"),
            self.say("2 Vehicle", "2 车辆"),
            self.say("3 Proof", "3 证明材料"),
            self.say("4 Check and submit", "4 核对并提交"),
        )
        spans = [
            h('<span class="{mark}">{name}</span>', name=name, mark="here" if n == current else "")
            for n, name in enumerate(names, 1)
        ]
        return h('<div class="steps narrow">{spans}</div>', spans=spans)

    def _person(self, form: JsonObject, errors: Mapping[str, str]) -> list[Markup]:
        labels = self._labels()
        return [
            field(key, labels[key], form.get(key, ""), errors.get(key, ""))
            for key in ("name", "birth", "email")
        ]

    def _car(self, form: JsonObject, errors: Mapping[str, str]) -> list[Markup]:
        labels, choose = self._labels(), {"": self.say("Please choose", "请选择")}
        months = {month: month for month in self.data["months"]}
        return [
            field("plate", labels["plate"], form.get("plate", ""), errors.get("plate", "")),
            select(
                "zone",
                labels["zone"],
                choose | self._zones(),
                form.get("zone", ""),
                errors.get("zone", ""),
            ),
            choices(
                "engine",
                labels["engine"],
                self._engines(),
                form.get("engine"),
                errors.get("engine", ""),
            ),
            select(
                "start",
                labels["start"],
                choose | months,
                form.get("start", ""),
                errors.get("start", ""),
            ),
        ]

    def _proof(self, form: JsonObject, errors: Mapping[str, str]) -> list[Markup]:
        consent = self.say(
            "I agree that my address is checked with the register.", "我同意核验我的住址信息。"
        )
        return [
            field("proof", self._labels()["proof"], "", errors.get("proof", ""), kind="file"),
            choice("checkbox", "consent", "yes", consent, form.get("consent") == "yes"),
            h('<p class="error">{text}</p>', text=errors.get("consent", "")),
        ]


async def _texts(request: web.Request) -> dict[str, str]:
    return {
        key: value.strip()
        for key, value in (await request.post()).items()
        if isinstance(value, str)
    }


def _stored(upload: FileField) -> JsonObject:
    content = upload.file.read()
    digest = hashlib.sha256(content).hexdigest()
    return {"name": upload.filename, "size": len(content), "sha256": digest}
