"""Text of unknown origin (agents, servers, task data) as one line that a terminal can be shown."""

from __future__ import annotations

__all__ = ["one_line", "printable"]

LONGEST = 1000


def one_line(text: str, longest: int = LONGEST) -> str:
    """Printable, white space as single spaces, the middle left out of what is longer than `longest`."""
    # Cut before it is looked at: an agent may answer with megabytes.
    return _cut(printable(" ".join(_cut(text, 4 * longest).split())), longest)


def printable(text: str) -> str:
    """With U+FFFD for control characters, half characters, and what turns the direction of text."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2
    return f"{text[:half]}...{text[-half:]}"
