"""What the command lines of all trainers share."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rollout.errors import RolloutError, UsageError
from rollout.options import Parser

__all__ = ["USAGE", "TrainerParser", "ending"]

USAGE = 2
"""Exit code of wrong usage."""
FAILED, INTERRUPTED = 1, 130


@contextmanager
def ending(interrupted: str) -> Iterator[None]:
    """Exit with one line and the code for whatever ends the training inside early.

    1 where the infrastructure is gone, 2 for wrong usage, 130 when it was interrupted: then the line says
    how to go on.
    """
    try:
        yield
    except (RolloutError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USAGE if isinstance(error, UsageError) else FAILED)
    except (KeyboardInterrupt, asyncio.CancelledError):
        print(f"interrupted; {interrupted}", file=sys.stderr)
        sys.exit(INTERRUPTED)


class TrainerParser(Parser):
    """Says where the options of a suite belong."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments"):
            message += '; options of the suite go into the quotes: --suite "NAME --option ..."'
        super().error(message)
