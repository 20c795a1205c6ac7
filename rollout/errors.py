"""Errors, by the boundary at which they happened.

A bad rollout is data, not a crash: whatever a plug-in raises is classified by the boundary that it
crossed, and ends as the outcome and the cause of one episode. `boundary()` does the classifying.

    RolloutError
    ├── UsageError          the user's input is wrong: one line, exit code 2, before anything starts
    ├── ModelError          the model server: dead, refusing, or answering nonsense
    ├── HarnessError        the agent program: missing, crashed for a reason that is not the policy's
    ├── SandboxError        the place where the harness runs
    ├── EnvironmentFault    the world: could not be opened, snapshotted or graded
    ├── JudgeError          the judge: unreachable, or its reply can't be read
    └── Blocked             a site refused the agent (captcha, login wall): neither a pass nor a failure
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

__all__ = [
    "Blocked",
    "EnvironmentFault",
    "HarnessError",
    "JudgeError",
    "ModelError",
    "RolloutError",
    "SandboxError",
    "UsageError",
    "boundary",
    "usable",
]


class RolloutError(Exception):
    """Base of every error that an episode can end with. `cause` names the boundary."""

    cause: ClassVar[str] = "rollout"
    detail: str = ""
    """What helps to mend it, of any length: a traceback."""


class UsageError(RolloutError):
    """Bad input from the user. The message is one line: what is wrong, where, and the remedy."""

    cause = "usage"


class ModelError(RolloutError):
    """The model server failed for good, after the gateway's own retries."""

    cause = "model"


class HarnessError(RolloutError):
    """The harness program failed in a way that the policy did not bring about."""

    cause = "harness"


class SandboxError(RolloutError):
    """The sandbox could not be started, written to, or kept alive."""

    cause = "sandbox"


class EnvironmentFault(RolloutError):
    """The environment could not open, answer, snapshot or grade its world."""

    cause = "environment"


class JudgeError(RolloutError):
    """The judge gave no verdict; the attempt stays ungraded."""

    cause = "judge"


class Blocked(RolloutError):
    """The outside world refused the agent: the attempt is reported as blocked, never as failed."""

    cause = "blocked"


@contextmanager
def boundary(error: type[RolloutError], doing: str) -> Iterator[None]:
    """Turn anything raised inside into `error`, unless it is classified already.

    The original exception stays as `__cause__`, its traceback as `detail`; cancellation passes through
    untouched.
    """
    try:
        yield
    except RolloutError:
        raise
    except (Exception, SystemExit) as cause:
        classified = error(f"{doing}: {type(cause).__name__}: {cause}")
        classified.detail = traceback.format_exc()
        raise classified from cause


@contextmanager
def usable(path: Path, remedy: str = "mend that and resume") -> Iterator[None]:
    """Turn what the disk refuses inside (it is full, read-only, gone) into a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; {remedy}") from error
