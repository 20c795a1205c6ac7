"""Tools behind a catalogue: what a harness offers that has the model look for tools (OpenClaw).

`tool_search(query)` answers with names and descriptions, `tool_call(id, args)` calls what was found.
"""

from __future__ import annotations

import json
import re

__all__ = ["CALL", "SEARCH", "names_in", "result_in"]

SEARCH = "tool_search"
CALL = "tool_call"

NAME = re.compile(r'"name": "([^"]+)"')
OBJECT = re.compile(r"^\{$.*^\}$", re.M | re.S)
"""The JSON of a reply, between the harness's warnings about what it may hold."""


def names_in(output: str) -> list[str]:
    """The tools that a search found."""
    return NAME.findall(output)


def result_in(output: str) -> str:
    """What the called tool said; the whole output where no result can be read in it."""
    try:
        found = OBJECT.search(output)
        parts = json.loads(found[0])["result"]["content"] if found else ()
        return "\n".join(str(part["text"]) for part in parts if part["type"] == "text") or output
    except (ValueError, LookupError, TypeError):
        return output
