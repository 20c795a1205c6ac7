"""Beacon: issues in pages, with filters, dialogs, specifications in new tabs, and a board to drag on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlencode

from aiohttp import web

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.site import Handler, Site, load_data
from environments.browser_use.sites.widgets import (
    button_form,
    card,
    field,
    pages,
    select,
    table,
    tag,
)
from rollout.types import JsonObject

__all__ = ["Tracker"]

PER_PAGE = 8
IN_REVIEW = 3
"""Issues that may be in review at a time."""
ME = "Alex Moreau"
FACETS = ("status", "priority", "label", "assignee")
NOBODY = "-"


class Tracker(Site):
    """The issue tracker of an app for notes."""

    name = "tracker"
    brand = {"en": "Beacon Issues", "zh": "灯塔问题跟踪"}
    accent = "#8a2f5c"
    script = "tracker.js"

    def __init__(self, *args: Any) -> None:
        self.data = load_data("tracker")
        super().__init__(*args)

    def initial(self) -> JsonObject:
        keys = ("number", "status", "priority", "label", "assignee")
        issues = [{key: each[key] for key in keys} | {"tags": []} for each in self.data["issues"]]
        comments = [
            {"id": n, "issue": each["issue"], "author": each["author"], "text": each["en"]}
            for n, each in enumerate(self.data["comments"], 1)
        ]
        return {"issues": issues, "comments": comments, "deleted": []}

    def menu(self) -> Iterator[tuple[str, str]]:
        yield "/issues", self.say("Issues", "问题列表")
        yield "/board", self.say("Board", "看板")

    def routes(self) -> Mapping[str, Handler]:
        return {
            "GET /": self.issues,
            "GET /issues": self.issues,
            "GET /issues/{number:\\d+}": self.issue,
            "POST /issues/{number:\\d+}": self.change,
            "POST /issues/{number:\\d+}/comment": self.comment,
            "POST /issues/{number:\\d+}/tag": self.tag,
            "POST /issues/{number:\\d+}/delete": self.delete,
            "POST /comments/delete": self.uncomment,
            "GET /spec/{name}": self.spec,
            "GET /board": self.board,
            "POST /board/move": self.move,
        }

    async def issues(self, request: web.Request) -> web.Response:
        query = {key: value for key, value in request.query.items() if key != "lang"}
        found = [each for each in self.state["issues"] if self._matches(each, query)]
        number = int(page) if (page := query.pop("page", "1")).isdecimal() else 1
        count = -(-len(found) // PER_PAGE)
        links = {n: f"/issues?{urlencode({**query, 'page': n})}" for n in range(1, count + 1)}
        rows = [self._row(each) for each in found[(number - 1) * PER_PAGE : number * PER_PAGE]]
        head = (
            self.say("No.", "编号"),
            self.say("Title", "标题"),
            self.say("Status", "状态"),
            self.say("Priority", "优先级"),
            self.say("Label", "标签"),
            self.say("Assignee", "负责人"),
        )
        title = self.say("Issues", "问题列表")
        counted = h(
            "<p>{text}</p>", text=self.say(f"{len(found)} issues", f"共 {len(found)} 个问题")
        )
        body = (self._filters(query), counted, table(head, rows), pages(links, number))
        return self.page(request, title, card(title, *body))

    async def issue(self, request: web.Request) -> web.Response:
        issue = self._issue(request)
        number, known = issue["number"], self._known(issue["number"])
        title = f"#{number} {self.of(known)}"
        link = '<p><a href="/spec/{name}" target="_blank">{text}</a></p>'
        spec = (
            h(
                link,
                name=known["spec"],
                text=self.say("Specification (new tab)", "规格文档（新标签页）"),
            )
            if "spec" in known
            else ""
        )
        comments = [
            self._comment(each) for each in self.state["comments"] if each["issue"] == number
        ]
        wide = h(
            ISSUE,
            title=title,
            spec=spec,
            tags=[tag(each) for each in issue["tags"]],
            comments=comments,
            action=f"/issues/{number}/comment",
            text=field("text", self.say("Your comment", "发表评论"), kind="textarea"),
            send=self.say("Comment", "评论"),
        )
        return self.page(
            request,
            title,
            h('<div class="columns actions">{wide}{side}</div>', wide=wide, side=self._side(issue)),
        )

    async def change(self, request: web.Request) -> web.Response:
        issue, form = self._issue(request), await request.post()
        allowed = {key: self._choices(key) for key in FACETS}
        values = {key: str(form.get(key, "")) for key in FACETS}
        if any(value not in allowed[key] for key, value in values.items()):
            raise web.HTTPNotFound
        issue.update(values | {"assignee": values["assignee"].replace(NOBODY, "")})
        self.notify(self.say("Saved.", "已保存。"))
        return self.go(f"/issues/{issue['number']}")

    async def comment(self, request: web.Request) -> web.Response:
        issue, text = self._issue(request), str((await request.post()).get("text", "")).strip()
        if text:
            last = max((each["id"] for each in self.state["comments"]), default=0)
            new = {"id": last + 1, "issue": issue["number"], "author": ME, "text": text}
            self.state["comments"].append(new)
            self.notify(self.say("Your comment is there.", "评论已发布。"))
        else:
            self.notify(self.say("Please write something.", "评论不能为空。"), "bad")
        return self.go(f"/issues/{issue['number']}")

    async def tag(self, request: web.Request) -> web.Response:
        issue, text = self._issue(request), str((await request.post()).get("tag", "")).strip()
        if text and text not in issue["tags"]:
            issue["tags"].append(text)
        return self.go(f"/issues/{issue['number']}")

    async def delete(self, request: web.Request) -> web.Response:
        issue = self._issue(request)
        self.state["issues"].remove(issue)
        self.state["deleted"].append(issue["number"])
        self.notify(
            self.say(f"Issue #{issue['number']} is deleted.", f"问题 #{issue['number']} 已删除。")
        )
        return self.go("/issues")

    async def uncomment(self, request: web.Request) -> web.Response:
        wanted = str((await request.post()).get("id"))
        found = next((each for each in self.state["comments"] if str(each["id"]) == wanted), None)
        if found is None:
            raise web.HTTPNotFound
        self.state["comments"].remove(found)
        self.notify(self.say("The comment is deleted.", "评论已删除。"))
        return self.go(f"/issues/{found['issue']}")

    async def spec(self, request: web.Request) -> web.Response:
        spec = self.data["specs"].get(request.match_info["name"])
        if spec is None:
            raise web.HTTPNotFound
        title = self.of(spec["name"])
        text = h("<p>{text}</p>", text=self.of(spec["text"]))
        return self.page(request, title, card(title, text, kind="narrow"))

    async def board(self, request: web.Request) -> web.Response:
        lanes = [
            h(
                '<div class="lane" data-status="{key}"><h2>{name}</h2>{cards}</div>',
                key=key,
                name=name,
                cards=[
                    self._card(each)
                    for each in self.state["issues"]
                    if each["status"] == key and self._on_board(each)
                ],
            )
            for key, name in self._choices("status").items()
        ]
        issues = [each for each in self.state["issues"] if self._on_board(each)]
        counts = [sum(i["status"] == key for i in issues) for key in self.data["statuses"]]
        title = f"{self.say('Board', '看板')} ({' · '.join(map(str, counts))})"
        return self.page(
            request,
            title,
            h('<h1>{title}</h1><div class="board">{lanes}</div>', title=title, lanes=lanes),
        )

    async def move(self, request: web.Request) -> web.Response:
        form = await request.post()
        issue = next(
            (each for each in self.state["issues"] if str(each["number"]) == form.get("number")),
            None,
        )
        status = str(form.get("status"))
        if issue is None or status not in self.data["statuses"]:
            raise web.HTTPNotFound
        reviewed = sum(each["status"] == "review" for each in self.state["issues"])
        if status == "review" != issue["status"] and reviewed >= IN_REVIEW:
            text = self.say(
                f"Only {IN_REVIEW} issues can be in review.", f"评审中最多 {IN_REVIEW} 个问题。"
            )
            return web.Response(text=text, status=409)
        issue["status"] = status
        return web.Response(text=self.say("Moved.", "已移动。"))

    def _issue(self, request: web.Request) -> JsonObject:
        number = int(request.match_info["number"])
        for issue in self.state["issues"]:
            if issue["number"] == number:
                return cast(JsonObject, issue)
        raise web.HTTPNotFound

    def _known(self, number: int) -> JsonObject:
        """What the data says of an issue: its titles."""
        known: JsonObject = next(each for each in self.data["issues"] if each["number"] == number)
        return known

    def _choices(self, key: str) -> dict[str, str]:
        if key == "assignee":
            return {
                NOBODY: self.say("Nobody", "未分配"),
                **{each: each for each in self.data["people"]},
            }
        table = {"status": "statuses", "priority": "priorities", "label": "labels"}[key]
        return {name: self.of(texts) for name, texts in self.data[table].items()}

    def _facet_names(self) -> dict[str, str]:
        return {
            "status": self.say("Status", "状态"),
            "priority": self.say("Priority", "优先级"),
            "label": self.say("Label", "标签"),
            "assignee": self.say("Assignee", "负责人"),
        }

    def _matches(self, issue: JsonObject, query: Mapping[str, str]) -> bool:
        words = query.get("q", "").casefold().split()
        known = self._known(issue["number"])
        return all(word in f"{known['en']} {known['zh']}".casefold() for word in words) and all(
            query.get(key, "") in ("", issue[key] or NOBODY) for key in FACETS
        )

    def _filters(self, query: Mapping[str, str]) -> Markup:
        every = {"": self.say("All", "全部")}
        lists = [
            select(key, name, every | self._choices(key), query.get(key, ""))
            for key, name in self._facet_names().items()
        ]
        return h(
            '<form class="row bottom" action="/issues">{search}{lists}'
            '<label class="field"><button>{apply}</button></label></form>',
            search=field("q", self.say("Words in the title", "标题关键词"), query.get("q", "")),
            lists=lists,
            apply=self.say("Filter", "筛选"),
        )

    def _row(self, issue: JsonObject) -> list[object]:
        link = '<a href="/issues/{n}">{title}</a>'
        return [
            f"#{issue['number']}",
            h(link, n=issue["number"], title=self.of(self._known(issue["number"]))),
            self._choices("status")[issue["status"]],
            tag(
                self._choices("priority")[issue["priority"]],
                "bad" if issue["priority"] == "critical" else "",
            ),
            self._choices("label")[issue["label"]],
            issue["assignee"]
            or h('<span class="soft">{text}</span>', text=self.say("Nobody", "未分配")),
        ]

    def _comment(self, comment: JsonObject) -> Markup:
        first = self.data["comments"]
        text = self.of(first[comment["id"] - 1]) if comment["id"] <= len(first) else comment["text"]
        ask = self.say("Delete this comment?", "确定删除此评论？")
        return h(
            '<div class="comment row between"><div><b>{author}</b><br>{text}</div>{delete}</div>',
            author=comment["author"],
            text=text,
            delete=button_form(
                "/comments/delete",
                self.say("Delete comment", "删除评论"),
                {"id": comment["id"]},
                kind="plain",
                ask=ask,
            ),
        )

    def _side(self, issue: JsonObject) -> Markup:
        number = issue["number"]
        lists = [
            select(key, name, self._choices(key), issue[key] or NOBODY)
            for key, name in self._facet_names().items()
        ]
        ask = self.say(f"Delete issue #{number} for good?", f"确定永久删除问题 #{number}？")
        return h(
            SIDE,
            number=number,
            lists=lists,
            save=self.part(
                "save", h("<button>{text}</button>", text=self.say("Save changes", "保存修改"))
            ),
            prompt=self.say("Which tag?", "添加哪个标签？"),
            add=self.say("Tag “needs-info”…", "添加标签 needs-info…"),
            delete=button_form(
                f"/issues/{number}/delete",
                self.say("Delete issue", "删除问题"),
                {},
                kind="plain",
                ask=ask,
            ),
        )

    def _on_board(self, issue: JsonObject) -> bool:
        return issue["priority"] in ("high", "critical")

    def _card(self, issue: JsonObject) -> Markup:
        return h(
            '<div class="ticket" data-number="{n}"><small>#{n}</small> {title}<br>{tag}</div>',
            n=issue["number"],
            title=self.of(self._known(issue["number"])),
            tag=tag(
                self._choices("priority")[issue["priority"]],
                "bad" if issue["priority"] == "critical" else "",
            ),
        )


ISSUE = """<div class="wide card"><h1>{title}</h1><p>{tags}</p>{spec}{comments}
<form method="post" action="{action}">{text}<button>{send}</button></form></div>"""

SIDE = """<div class="side card"><form method="post" action="/issues/{number}">{lists}{save}</form><p></p>
<form method="post" action="/issues/{number}/tag" data-prompt="{prompt}" data-default="needs-info">
<input type="hidden" name="tag"><button class="quiet">{add}</button></form><p></p>{delete}</div>"""
