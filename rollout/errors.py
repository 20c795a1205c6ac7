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

import sysconfig
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
    "described",
    "shown",
    "usable",
]

OURS = (
    str(Path(__file__).parent),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)
"""Folders of code in which a plug-in's mistake shows and is not made."""


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
        classified = error(f"{doing}: {described(cause)}")
        classified.detail = traceback.format_exc()
        raise classified from cause


def described(error: BaseException) -> str:
    """Kind and message, and the line of the plug-in's code: `KeyError: 'a' (my.py, line 3)`."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [(frame.filename, frame.lineno) for frame in frames if _theirs(frame.filename)]
    where = f" ({shown(places[-1][0])}, line {places[-1][1]})" if places else ""
    return f"{type(error).__name__}: {error}{where}"


def _theirs(filename: str) -> bool:
    """Whether a file is neither this core's, nor Python's, nor an installed package's."""
    return Path(filename).is_absolute() and not filename.startswith(OURS)


def shown(filename: str) -> str:
    """A path as the user may type it: from the folder where they are, where it is inside."""
    path, here = Path(filename), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@contextmanager
def usable(path: Path, remedy: str = "mend that and resume") -> Iterator[None]:
    """Turn what the disk refuses inside (it is full, read-only, gone) into a UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; {remedy}") from error
