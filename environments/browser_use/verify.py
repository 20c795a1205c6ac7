"""Grading by a task's verifier.

A verifier is a Python file with a function `verify_<task id>(state, answer)` for each of its tasks, `-`
in the id written `_`. `state` is the state of the sites by name, with `downloads` beside them; `answer`
is the agent's final message. It returns a Grade, or checks: (name, whether it holds[, note]).
"""

from __future__ import annotations

import copy
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from environments.browser_use.task import BrowserTask
from rollout.errors import EnvironmentFault
from rollout.types import Grade, JsonObject, Trace

__all__ = ["broken", "function_name", "graded", "verify"]

Check = tuple[str, Any] | tuple[str, Any, str]
Verify = Callable[[JsonObject, str], Grade | Iterable[Check]]


def verify(task: BrowserTask, trace: Trace) -> Grade:
    """The grade that the verifier gives. Raises EnvironmentFault when it fails."""
    path = Path(task.verifier)
    world = trace.world
    state = copy.deepcopy({**world.get("site", {}), "downloads": world.get("downloads", [])})
    try:
        # What it prints must not get between a program and the result that it reads from stdout.
        with redirect_stdout(sys.stderr):
            return graded(_function(task)(state, trace.answer))
    except (Exception, SystemExit) as error:
        fault = EnvironmentFault(f"{_place(error, path)}: {type(error).__name__}: {error}")
        fault.detail = traceback.format_exc()
        raise fault from error


def broken(task: BrowserTask) -> str:
    """Why a task's verifier can't grade, found before an attempt is spent; empty when it can."""
    try:
        _function(task)
    except (Exception, SystemExit) as error:
        return f"{task.verifier}: {type(error).__name__}: {error}"
    return ""


def function_name(task_id: str) -> str:
    """The name of the function that grades a task."""
    return f"verify_{task_id.replace('-', '_')}"


def graded(result: Grade | Iterable[Check]) -> Grade:
    """A grade from checks: passed when all hold, the score their share."""
    if isinstance(result, Grade):
        return result
    checks = [(check[0], bool(check[1]), check[2] if len(check) > 2 else "") for check in result]
    if not checks:
        raise ValueError("the verifier made no check")
    held = sum(holds for _, holds, _ in checks)
    return Grade(
        score=held / len(checks),
        passed=held == len(checks),
        parts={name: float(holds) for name, holds, _ in checks},
        notes=tuple(f"not met: {note or name}" for name, holds, note in checks if not holds),
    )


def _function(task: BrowserTask) -> Verify:
    path = Path(task.verifier)
    name = function_name(task.id)
    found = getattr(_module(path, path.stat().st_mtime_ns), name, None)
    if not callable(found):
        raise TypeError(f"no function {name}(state, answer)")
    verifier: Verify = found
    return verifier


@lru_cache(maxsize=256)
def _module(path: Path, version: int) -> ModuleType:  # noqa: ARG001 (cache key)
    """Compiled here, not imported: no .pyc appears among the task's data."""
    module = ModuleType(f"verifier_{path.parent.name}")
    module.__file__ = str(path)
    exec(compile(path.read_text("utf-8"), str(path), "exec"), module.__dict__)
    return module


def _place(error: BaseException, path: Path) -> str:
    """`verify.py:LINE` where the traceback last was in that file."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)
