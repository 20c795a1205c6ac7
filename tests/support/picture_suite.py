"""A suite that is found by its name, `support.picture_suite`: notes, of which a picture is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from support.screen import png
from support.toys import Notes, NotesWorld, note_task

from rollout.environment import Environment
from rollout.suite import Suite
from rollout.types import Image, Task, ToolReply


class Board(NotesWorld):
    async def call(self, name: str, arguments: Any) -> ToolReply:
        reply = await super().call(name, arguments)
        return msgspec.structs.replace(reply, images=(Image(data=png(1, 112, 84)),))


class Boards(Notes):
    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[Board]:
        yield Board(task)


class PictureSuite(Suite):
    name, title = "support.picture_suite", "Toy: save a note, and see it"

    def environment(self) -> Environment:
        return Boards()

    def tasks(self, data: Path | None) -> Sequence[Task]:
        return [note_task("bread")]
