"""What the command lines of all trainers share."""

from __future__ import annotations

from typing import NoReturn

from rollout.options import Parser

__all__ = ["TrainerParser"]


class TrainerParser(Parser):
    """Says where the options of a suite belong."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments"):
            message += '; options of the suite go into the quotes: --suite "NAME --option ..."'
        super().error(message)
