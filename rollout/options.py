"""What every command line here shares."""

from __future__ import annotations

import argparse
from typing import NoReturn

from rollout.errors import UsageError

__all__ = ["Parser"]


class Parser(argparse.ArgumentParser):
    """Complains with one line, as everything here does."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (--help shows the options)")
