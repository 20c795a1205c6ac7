"""Stacks: documents in folders, with previews in a frame, downloads, stars and moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import web

from environments.browser_use.sites.markup import Markup, h
from environments.browser_use.sites.site import Handler, Site, load_data
from environments.browser_use.sites.widgets import button_form, card, field, options, table
from rollout.types import JsonObject

__all__ = ["Library"]


class Library(Site):
    """The document library of a small association."""

    name = "library"
    brand = {"en": "Stacks Documents", "zh": "书阁文档库"}
    accent = "#2d6a3e"

    def __init__(self, *args: Any) -> None:
        data = load_data("library")
        self.documents: dict[str, JsonObject] = {each["id"]: each for each in data["documents"]}
        self.folders: dict[str, dict[str, str]] = data["folders"]
        super().__init__(*args)

    def initial(self) -> JsonObject:
        return {
            "folder": {key: each["folder"] for key, each in self.documents.items()},
            "folders": {},
            "starred": [],
            "downloaded": [],
        }

    def menu(self) -> Iterator[tuple[str, str]]:
        yield "/", self.say("All documents", "全部文档")
        yield "/starred", self.say("Starred", "已加星标")

    def routes(self) -> Mapping[str, Handler]:
        return {
            "GET /": self.everything,
            "GET /starred": self.starred,
            "GET /folder/{key}": self.folder,
            "POST /folders": self.new_folder,
            "GET /document/{id}": self.document,
            "GET /preview/{id}": self.preview,
            "GET /download/{id}": self.download,
            "POST /star": self.star,
            "POST /move": self.move,
        }

    async def everything(self, request: web.Request) -> web.Response:
        words = request.query.get("q", "").casefold().split()
        found = [
            key
            for key, each in self.documents.items()
            if all(word in f"{each['en']} {each['zh']} {each['file']}".casefold() for word in words)
        ]
        return self._listing(request, self.say("All documents", "全部文档"), found, "")

    async def starred(self, request: web.Request) -> web.Response:
        return self._listing(request, self.say("Starred", "已加星标"), self.state["starred"], "")

    async def folder(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        if key not in self._folders():
            raise web.HTTPNotFound
        found = [each for each, folder in self.state["folder"].items() if folder == key]
        return self._listing(request, self._folders()[key], found, key)

    async def new_folder(self, request: web.Request) -> web.Response:
        name = str((await request.post()).get("name", "")).strip()
        if not name or name in self._folders().values():
            self.notify(self.say("Give the folder a new name.", "请填写新的文件夹名称。"), "bad")
            return self.go("/")
        key = f"new{len(self.state['folders']) + 1}"
        self.state["folders"][key] = name
        self.notify(self.say(f"The folder {name} is there.", f"已新建文件夹“{name}”。"))
        return self.go(f"/folder/{key}")

    async def document(self, request: web.Request) -> web.Response:
        document = self._document(request.match_info["id"])
        key = document["id"]
        download = h(
            '<a class="button" href="/download/{id}">{text}</a>',
            id=key,
            text=self.say("Download", "下载"),
        )
        star = button_form("/star", self.say("★ Star", "★ 加星标"), {"id": key})
        body = h(
            DOCUMENT,
            name=self.of(document),
            date=self.date(document["date"]),
            folder=self._folders()[self.state["folder"][key]],
            download=self.part("download", download),
            star=star,
            id=key,
            label=self.say("Move to", "移动到"),
            folders=options(self._folders(), self.state["folder"][key]),
            move=self.say("Move", "移动"),
        )
        return self.page(
            request,
            self.of(document),
            h('<div class="columns">{side}{body}</div>', side=self._side(""), body=body),
        )

    async def preview(self, request: web.Request) -> web.Response:
        document = self._document(request.match_info["id"])
        return self.framed(
            self.of(document),
            h(
                "<h2>{name}</h2><p>{text}</p>",
                name=self.of(document),
                text=self.of(document["text"]),
            ),
        )

    async def download(self, request: web.Request) -> web.Response:
        document = self._document(request.match_info["id"])
        self.state["downloaded"].append(document["id"])
        content = f"{self.of(document)}\n\n{self.of(document['text'])}\n"
        disposition = f'attachment; filename="{document["file"]}"'
        return web.Response(text=content, headers={"Content-Disposition": disposition})

    async def star(self, request: web.Request) -> web.Response:
        key = self._document(str((await request.post()).get("id")))["id"]
        if key not in self.state["starred"]:
            self.state["starred"].append(key)
        self.notify(self.say("Starred.", "已加星标。"))
        return self.go(f"/document/{key}")

    async def move(self, request: web.Request) -> web.Response:
        form = await request.post()
        key, folder = self._document(str(form.get("id")))["id"], str(form.get("folder"))
        if folder not in self._folders():
            raise web.HTTPNotFound
        self.state["folder"][key] = folder
        name = self._folders()[folder]
        self.notify(self.say(f"Moved to {name}.", f"已移动到“{name}”。"))
        return self.go(f"/document/{key}")

    def _document(self, key: str) -> JsonObject:
        if key not in self.documents:
            raise web.HTTPNotFound
        return self.documents[key]

    def _folders(self) -> dict[str, str]:
        own = {key: self.of(name) for key, name in self.folders.items()}
        return {**own, **self.state["folders"]}

    def _listing(
        self, request: web.Request, title: str, keys: list[str], folder: str
    ) -> web.Response:
        found = sorted((self.documents[key] for key in keys), key=lambda each: each["en"])
        link = '<a href="/document/{id}">{name}</a>'
        rows = [
            [
                h(link, id=each["id"], name=self.of(each)),
                self._folders()[self.state["folder"][each["id"]]],
                self.date(each["date"]),
            ]
            for each in found
        ]
        head = (
            self.say("Name", "名称"),
            self.say("Folder", "文件夹"),
            self.say("Changed", "修改日期"),
        )
        search = h(
            '<form class="row" action="/"><input name="q" placeholder="{hint}" aria-label="{hint}">'
            "<button>{go}</button></form>",
            hint=self.say("Words in the name", "名称关键词"),
            go=self.say("Find", "查找"),
        )
        wide = h('<div class="wide">{card}</div>', card=card(title, search, table(head, rows)))
        return self.page(
            request,
            title,
            h('<div class="columns">{side}{wide}</div>', side=self._side(folder), wide=wide),
        )

    def _side(self, current: str) -> Markup:
        link = '<a href="/folder/{key}" class="{mark}">{name}</a>'
        folders = [
            h(link, key=key, name=name, mark="here" if key == current else "")
            for key, name in self._folders().items()
        ]
        return h(
            '<div class="side card"><h2>{title}</h2>{folders}<p></p>'
            '<form method="post" action="/folders">{name}'
            '<button class="quiet">{create}</button></form></div>',
            title=self.say("Folders", "文件夹"),
            folders=folders,
            name=field("name", self.say("New folder", "新建文件夹")),
            create=self.say("Create", "创建"),
        )


DOCUMENT = """<div class="wide card"><h1>{name}</h1><p class="soft">{folder} · {date}</p>
<div class="row actions">{download}{star}
<form method="post" action="/move" class="row"><input type="hidden" name="id" value="{id}">
<label>{label} <select name="folder">{folders}</select></label>
<button class="quiet">{move}</button></form>
</div><p></p><iframe src="/preview/{id}" title="{name}"></iframe></div>"""
