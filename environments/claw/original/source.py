"""What a grader.py says about itself without being run: its judge, the tools that it looks for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from environments.claw.service import file_version

__all__ = ["asks_judge", "names"]

HELPERS = "claw_eval.graders."
PLUMBING = frozenset({"base", "llm_judge", "registry"})
"""Helper modules that hand the judge around and ask it nothing of their own accord."""


def asks_judge(grader: Path, checkout: Path) -> bool:
    """Whether a grader asks the judge for anything.

    More of them do than fail without one: some score their judged parts 0 when there is no judge, and
    such a 0 says nothing about the agent.
    """
    return any(source.asks_judge for source in _sources(grader, checkout))


def names(grader: Path, checkout: Path, tools: Set[str]) -> bool:
    """Whether one of these tool names stands in a grader."""
    return any(source.texts & tools for source in _sources(grader, checkout))


class _Source(NamedTuple):
    """What matters of one file."""

    asks_judge: bool
    """It uses an attribute of `judge`."""
    texts: frozenset[str]
    """Its string constants."""
    built_on: tuple[str, ...]
    """Files of the checkout that it inherits or imports from."""


def _sources(grader: Path, checkout: Path) -> Iterator[_Source]:
    """A grader, the peers that it inherits from and the helpers that it imports."""
    todo, seen = [grader], set[Path]()
    while todo:
        path = todo.pop()
        if path not in seen and path.is_file():
            seen.add(path)
            source = _read(path, file_version(path))
            yield source
            todo += [checkout / name for name in source.built_on]


@lru_cache(maxsize=1024)
def _read(path: Path, version: tuple[int, int]) -> _Source:  # noqa: ARG001 (cache key)
    try:
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"), str(path))))
    except (SyntaxError, ValueError):
        # It will fail when it grades, with a traceback that says where.
        return _Source(False, frozenset(), ())
    return _Source(
        any(map(_asks, nodes)),
        frozenset(
            n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)
        ),
        tuple(name for node in nodes for name in _built_on(node)),
    )


def _asks(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "judge"
    )


def _built_on(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.ImportFrom(module=str(module)) if module.startswith(HELPERS):
            name = module.removeprefix(HELPERS)
            if name not in PLUMBING:
                yield f"src/claw_eval/graders/{name}.py"
        case ast.Call(
            func=ast.Name(id="load_peer_grader"), args=[ast.Constant(value=str(peer)), *_]
        ):
            yield f"tasks/{peer}/grader.py"
