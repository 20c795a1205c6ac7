"""What a grader.py says about itself without being run: whether it asks a judge."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from environments.claw.service import file_version

__all__ = ["asks_judge"]

HELPERS = "claw_eval.graders."
PLUMBING = frozenset({"base", "llm_judge", "registry"})
"""Helper modules that hand the judge around and ask it nothing of their own accord."""


def asks_judge(grader: Path, checkout: Path) -> bool:
    """Whether a grader, a peer that it inherits from or a helper that it imports asks the judge.

    More of them do than fail without one: some score their judged parts 0 when there is no judge, and
    such a 0 says nothing about the agent.
    """
    todo, seen = [grader], set[Path]()
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        asks, names = _read(path, file_version(path))
        if asks:
            return True
        todo += [checkout / name for name in names]
    return False


@lru_cache(maxsize=1024)
def _read(path: Path, version: tuple[int, int]) -> tuple[bool, tuple[str, ...]]:  # noqa: ARG001
    """Whether a file uses an attribute of `judge`, and the files of the checkout that it builds on."""
    try:
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"), str(path))))
    except (SyntaxError, ValueError):
        # It will fail when it grades, with a traceback that says where.
        return False, ()
    asks = any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "judge"
        for node in nodes
    )
    return asks, tuple(name for node in nodes for name in _built_on(node))


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
