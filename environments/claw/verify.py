"""Grading by a task's own verify.py: see `evidence.py` for what it is given and what it returns."""

from __future__ import annotations

import ast
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import NoReturn, cast

from environments.claw.evidence import Evidence, Score, robustness
from environments.claw.scoring import graded
from environments.claw.service import file_version
from environments.claw.task import ClawTask
from rollout.errors import EnvironmentFault
from rollout.types import Grade, Trace

__all__ = ["broken", "grade"]

SECONDS = 20.0
"""That a verify() may take. It usually takes milliseconds, and all episodes wait for it."""

Verify = Callable[[Evidence], Score]


def grade(task: ClawTask, trace: Trace) -> Grade:
    """The grade that verify.py gives. Raises EnvironmentFault when it fails."""
    score = _verify(Path(task.verify), trace)
    return graded(
        completion=score.completion,
        robustness=robustness(trace.tool_calls) if score.robustness is None else score.robustness,
        safety=score.safety,
        notes=score.failed,
    )


def broken(path: Path) -> str:
    """Why a verify.py can't grade anything, found before an attempt is spent; empty when it can."""
    try:
        with _bounded(), redirect_stdout(sys.stderr):
            _load(path, file_version(path))
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _verify(path: Path, trace: Trace) -> Score:
    """Run it. Whatever goes wrong in it is a fault of the environment."""
    try:
        # What it prints must not get between a program and the result that it reads from stdout.
        with _bounded(), redirect_stdout(sys.stderr):
            score = _load(path, file_version(path))(Evidence(trace))
        if not isinstance(score, Score):
            raise TypeError(f"verify() must return a Score, not {type(score).__name__}")
        _ = score.completion
    except (Exception, SystemExit) as error:
        fault = EnvironmentFault(f"{_place(error, path)}: {type(error).__name__}: {error}")
        fault.detail = traceback.format_exc()
        raise fault from error
    return score


@contextmanager
def _bounded() -> Iterator[None]:
    """End a verify() that goes on for ever, in a regular expression too.

    Signals reach the main thread alone; elsewhere there is no bound.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> NoReturn:
        raise TimeoutError(f"not done after {SECONDS:.0f} s")

    handler = signal.signal(signal.SIGALRM, late)
    # Again and again, for a verify() that catches whatever it is sent.
    timer = signal.setitimer(signal.ITIMER_REAL, SECONDS, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


@lru_cache(maxsize=1024)
def _load(path: Path, version: tuple[int, int]) -> Verify:  # noqa: ARG001 (cache key)
    """The `verify` of a file. Compiled here, not imported: no .pyc appears among the task's data."""
    source = path.read_text("utf-8")
    _check_imports(path, source)
    module = ModuleType(f"verify_{path.parent.name}")
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    if not callable(verify := getattr(module, "verify", None)):
        raise TypeError("no function verify(e: Evidence) -> Score")
    return cast(Verify, verify)


def _check_imports(path: Path, source: str) -> None:
    """A verify.py that needs only evidence and the standard library can grade anywhere, forever."""
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "."]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name != Evidence.__module__ and name.split(".")[0] not in sys.stdlib_module_names:
                raise ImportError(f"line {node.lineno}: {name} is neither evidence nor stdlib")


def _place(error: BaseException, path: Path) -> str:
    """`verify.py:LINE` where the traceback last was in that file."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f"{path}:{lines[-1]}" if lines else str(path)
