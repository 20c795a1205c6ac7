"""The records of a task with mock services, and of what it needs."""

from __future__ import annotations

from typing import Literal

from environments.claw.checks import LIVE_WEB
from environments.claw.faults import Fault
from environments.claw.service import service_class
from environments.claw.snapshot import SnapshotSpec
from environments.claw.user import UserSpec
from rollout.types import Record, Task

__all__ = ["REPLAY", "ClawTask", "Endpoint", "ServiceSpec", "Split"]

REPLAY = "WEB_REAL_CACHE_DIR"
"""Names a recording of the web to a web service."""

Split = Literal["general", "multi_turn", "multimodal"]
"""claw-eval's parts: single requests, conversations, and tasks about images, video and pages."""


class Endpoint(Record, frozen=True, kw_only=True):
    """Where a tool's calls go."""

    path: str
    method: str = "POST"

    @property
    def prefix(self) -> str:
        """The prefix of the service that serves it."""
        return self.path.strip("/").split("/")[0]


class ServiceSpec(Record, frozen=True, kw_only=True):
    """A service that a task needs."""

    name: str
    """Its key in the audit log."""
    kind: str
    """The module in `services/`."""
    env: dict[str, str] = {}
    """Fixture variables with absolute paths, and other settings."""

    @property
    def prefix(self) -> str:
        """First segment of its URL paths."""
        return service_class(self.kind).prefix

    @property
    def live(self) -> bool:
        """Whether the original searches the real web."""
        return self.kind in LIVE_WEB

    @property
    def replayed(self) -> bool:
        """Whether it answers out of a recording."""
        return self.live and REPLAY in self.env


class ClawTask(Task, frozen=True, kw_only=True):
    """A task whose world is a set of mock services."""

    folder: str
    services: tuple[ServiceSpec, ...] = ()
    endpoints: dict[str, Endpoint] = {}
    """Tool name -> endpoint."""
    clock: str = ""
    """The world's time at the start, ISO 8601; empty: the real time, and fixture dates that follow it."""
    faults: tuple[Fault, ...] = ()
    rubric: str = ""
    """What a judge is told to look at."""
    verify: str = ""
    """Path of verify.py; empty when there is none."""
    grader: str = ""
    """Path of claw-eval's grader.py, where there is no verify.py."""
    checkout: str = ""
    """The claw-eval repository that the grader belongs to."""
    split: Split = "general"
    documents: dict[str, str] = {}
    """Attached text: file name -> path on the host. It follows the prompt, as in claw-eval."""
    images: tuple[str, ...] = ()
    """Attached images: paths in the workspace."""
    user: UserSpec | None = None
    """The user who replies to the agent's answers."""
    snapshot: SnapshotSpec = SnapshotSpec()
    """What graders want to know of the sandbox."""
    needs_shell: bool = False
    """Whether the agent can't do the task without running commands or writing files."""
    corrections: tuple[str, ...] = ()
    """Ids of the corrections that were applied."""
