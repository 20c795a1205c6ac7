"""YAML files of tasks: plain data only, and no more of it than the file seems to hold.

An alias (`*name`) repeats a node by reference. A few lines of them stand for more nodes than any memory
holds, and one inside its own node for infinitely many; neither is found before something walks the tree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

__all__ = ["read_yaml"]

NODES = 1_000_000
"""Of a file with its aliases written out, at most."""

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:
    """The data in a file. Raises OSError, ValueError and yaml.YAMLError."""
    if path.exists() and not path.is_file():
        raise ValueError("it is no regular file")
    data = yaml.load(path.read_text("utf-8"), LOADER)
    if _size(data, {}) > NODES:
        raise ValueError(f"its aliases stand for more than {NODES:,} values")
    return data


def _size(value: Any, known: dict[int, int]) -> int:
    """Nodes of a tree whose shared parts count each time. A part inside itself counts as too many."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = NODES + 1  # as long as it is being counted
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(item, known) for item in items)
    return known[id(value)]
