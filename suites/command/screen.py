"""Printing what came from elsewhere: no markup is read in it, and no control character gets out."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from rollout.text import one_line, printable

__all__ = ["say", "shown"]


def shown(text: str, style: str = "") -> Text:
    """Text as one line."""
    return Text(one_line(text), style=style)


def say(console: Console, text: str, style: str = "") -> None:
    """Print each line, however long it is."""
    for line in text.splitlines() or [""]:
        console.print(Text(printable(line), style=style), soft_wrap=True)
