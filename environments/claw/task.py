"""Tasks in claw-eval's task.yaml schema: the record, and the loader that names every mistake.

A task is a folder: `task.yaml`, `fixtures/`, and, where the task is ours or yours, `verify.py` (grades an
attempt) and `solutions.yaml` (a reference solution and wrong ones, as data).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ValidationError

from environments.claw.clock import Clock
from environments.claw.faults import Fault
from environments.claw.schema import ServiceEntry, SolutionsFile, StepEntry, TaskFile, explain
from environments.claw.service import FixtureError, Service
from rollout import plugins
from rollout.errors import UsageError
from rollout.types import Record, Task, ToolSpec

__all__ = [
    "NEEDS_GRADERS",
    "ClawTask",
    "Endpoint",
    "ServiceSpec",
    "load_task",
    "load_tasks",
    "service_class",
]

NEEDS_GRADERS = "needs the original graders"
"""Skip reason of a task that could run here but has no verify.py."""

LIVE_WEB = frozenset({"web_real", "web_real_injection"})
SANDBOX_TOOLS = frozenset(
    {"Bash", "Read", "Write", "Edit", "Glob", "Grep", "BrowserScreenshot", "ReadMedia", "Download"}
)
"""Tools that claw-eval's container brings along; a task lists them without an endpoint."""
VIDEO = (".mp4", ".mov", ".avi", ".mkv", ".webm")

M = TypeVar("M", bound=BaseModel)


class Endpoint(Record, frozen=True, kw_only=True):
    """Where a tool's calls go."""

    path: str
    method: str = "POST"

    @property
    def service(self) -> str:
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
    verify: str = ""
    """Path of verify.py; empty when there is none."""


def load_tasks(folder: Path) -> list[ClawTask]:
    """All tasks below a folder, by name.

    Raises UsageError with one line for each thing that is wrong in any of them.
    """
    folders = sorted(path.parent for path in folder.glob("*/task.yaml"))
    if not folders:
        raise UsageError(f"{folder}: no */task.yaml; name the folder that holds the task folders")
    return _load(folders)


def load_task(folder: Path) -> ClawTask:
    """The task in one folder. Raises UsageError with one line for each thing that is wrong."""
    return _load([folder])[0]


@cache
def service_class(kind: str) -> type[Service]:
    """The service of this name. Raises UsageError for an unknown one."""
    return plugins.load("environments.claw.services", kind, Service)


def _load(folders: Iterable[Path]) -> list[ClawTask]:
    loaders = [_Loader(folder.resolve()) for folder in folders]
    tasks = [task for loader in loaders if (task := loader.load()) is not None]
    if problems := [problem for loader in loaders for problem in loader.problems]:
        raise UsageError("\n".join(problems))
    return tasks


class _Loader:
    """Reads one task folder and collects what is wrong with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[str] = []
        self.absent: list[str] = []
        """What a task without verify.py lacks; it is skipped then: partial data sets are common."""
        self.has_verify = (folder / "verify.py").is_file()

    def load(self) -> ClawTask | None:
        """The task; None when it can't be made sense of."""
        data = self._read("task.yaml", TaskFile)
        if data is None:
            return None
        solutions = None
        if (self.folder / "solutions.yaml").exists():
            solutions = self._read("solutions.yaml", SolutionsFile)
        self._check(data)
        self._check_faults(data)
        if solutions is not None:
            self._check_steps("reference", solutions.reference.steps, data)
            for n, wrong in enumerate(solutions.wrong):
                self._check_steps(f"wrong[{n}]", wrong.steps, data)
        return ClawTask(
            id=data.task_id,
            prompt=data.prompt.text,
            tools=tuple(_tools(data)),
            files=dict(self._files(data)),
            category=data.category,
            language=data.prompt.language,
            difficulty=data.difficulty,
            tags=tuple(data.tags),
            timeout=data.environment.timeout_seconds,
            max_turns=data.environment.max_turns,
            reference=solutions.reference.record("reference") if solutions else None,
            wrong=tuple(w.record(w.name) for w in solutions.wrong) if solutions else (),
            folder=str(self.folder),
            services=tuple(self._services(data)),
            endpoints=_endpoints(data),
            clock=data.clock,
            faults=tuple(fault.record() for fault in data.faults),
            rubric=data.judge_rubric,
            verify=str(self.folder / "verify.py") if self.has_verify else "",
            skip=self._skip(data),
            fingerprint=_fingerprint(self.folder),
        )

    def _read(self, name: str, model: type[M]) -> M | None:
        """A file of the task; None, and problems, when it is not what it should be."""
        path = self.folder / name
        try:
            return model.model_validate(yaml.load(path.read_text("utf-8"), _YAML))
        except ValidationError as error:
            self.problems += [f"{path}: {problem}" for problem in explain(error)]
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            self.problems.append(f"{path}: line {line}: {error.problem}; correct the YAML")
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(f"{path}: can't be read ({error}); write it as UTF-8 text")
        return None

    def _problem(self, field: str, what: str, file: str = "task.yaml") -> None:
        self.problems.append(f"{self.folder / file}: {field}: {what}")

    def _fixture_problem(self, field: str, what: str) -> None:
        if self.has_verify:
            self._problem(field, what)
        else:
            self.absent.append(f"{field}: {what}")

    def _check(self, data: TaskFile) -> None:
        """What fits together in task.yaml and what does not."""
        if data.task_id != self.folder.name:
            self._problem("task_id", f"is {data.task_id!r}; name it like its folder")
        names = [tool.name for tool in data.tools]
        endpoints = {endpoint.tool_name for endpoint in data.tool_endpoints}
        for n, name in enumerate(names):
            if name in names[:n]:
                self._problem(f"tools[{n}].name", f"{name!r} is there twice; rename or remove one")
            if name not in endpoints and name not in SANDBOX_TOOLS:
                self._problem(
                    f"tools[{n}].name", f"{name!r} has no endpoint; add it to tool_endpoints"
                )
        for n, endpoint in enumerate(data.tool_endpoints):
            if endpoint.tool_name not in names:
                self._unknown(f"tool_endpoints[{n}].tool_name", endpoint.tool_name, "tool", names)
            self._check_url(f"tool_endpoints[{n}].url", urlsplit(endpoint.url).path, data)

    def _check_url(self, field: str, path: str, data: TaskFile) -> None:
        """That a service of the task serves the path; claw-eval's own tasks may point to no route."""
        kinds = [_kind(service) for service in data.services]
        classes = [service for kind in kinds if (service := self._class(kind))]
        if len(classes) < len(kinds):
            return  # a live service, or an unknown one, which is reported already
        serving = [service for service in classes if path.startswith(f"/{service.prefix}/")]
        if not serving:
            self._problem(field, f"no service serves {path}; add the service to services")
        elif self.has_verify and path not in serving[0].routes:
            self._unknown(field, path, "route", serving[0].routes)

    def _check_faults(self, data: TaskFile) -> None:
        tools = ["*", *(tool.name for tool in data.tools)]
        services = ["*", *(service.name for service in data.services)]
        for n, fault in enumerate(data.faults):
            if fault.tool and fault.tool not in tools:
                self._unknown(f"faults[{n}].tool", fault.tool, "tool", tools)
            if fault.service and fault.service not in services:
                self._unknown(f"faults[{n}].service", fault.service, "service", services)

    def _check_steps(self, field: str, steps: list[StepEntry], data: TaskFile) -> None:
        tools = [tool.name for tool in data.tools]
        for n, step in enumerate(steps):
            if step.call not in tools:
                at = f"{field}.steps[{n}].call"
                self._unknown(at, step.call, "tool", tools, "solutions.yaml")
            for reference in _references(step.arguments):
                if not 1 <= reference <= n:
                    what = f"{{{{{reference}. ...}}}} must name an earlier step, 1 to {n}"
                    self._problem(f"{field}.steps[{n}].arguments", what, "solutions.yaml")

    def _unknown(
        self, field: str, name: str, noun: str, known: Iterable[str], file: str = "task.yaml"
    ) -> None:
        close = get_close_matches(name, known := list(known), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
        self._problem(field, f"no {noun} {name!r}; {hint}", file)

    def _class(self, kind: str) -> type[Service] | None:
        try:
            return service_class(kind)
        except UsageError:
            return None

    def _services(self, data: TaskFile) -> Iterator[ServiceSpec]:
        prefixes: list[str] = []
        for n, service in enumerate(data.services):
            field, kind = f"services[{n}]", _kind(service)
            if kind in LIVE_WEB:
                continue
            cls = self._class(kind)
            if cls is None:
                known = plugins.available("environments.claw.services")
                self._unknown(f"{field}.name", kind, "service", known)
                continue
            if cls.prefix in prefixes:
                self._problem(f"{field}.name", f"{cls.prefix} is there twice; remove one")
            prefixes.append(cls.prefix)
            env = self._env(field, service, cls)
            self._try(field, cls, env)
            yield ServiceSpec(name=service.name, kind=kind, env=env)

    def _env(self, field: str, service: ServiceEntry, cls: type[Service]) -> dict[str, str]:
        env = {key: value for key, value in service.env.items() if key != "PORT"}
        for variable, default in cls.fixtures.items():
            path = self.folder / "fixtures" / default
            if variable in env:
                path = self._find(env[variable]) or self.folder / env[variable]
            env[variable] = str(path)
        return env

    def _try(self, field: str, cls: type[Service], env: dict[str, str]) -> None:
        """Open the service once, so that a bad fixture is found before anything starts."""
        try:
            cls(env, Clock())
        except FixtureError as error:
            self._fixture_problem(field, str(error))
        except (ValueError, TypeError, AttributeError) as error:
            self._fixture_problem(field, f"{', '.join(env.values())}: {error}; correct the fixture")

    def _files(self, data: TaskFile) -> Iterator[tuple[str, str]]:
        for field, names in (
            ("sandbox_files", data.sandbox_files),
            ("prompt.attachments", data.prompt.attachments),
        ):
            for n, name in enumerate(names):
                path = self._find(name)
                if Path(name).is_absolute() or ".." in Path(name).parts:
                    self._problem(
                        f"{field}[{n}]", f"{name!r} leaves the workspace; use a path below"
                    )
                elif path is None:
                    self._fixture_problem(f"{field}[{n}]", f"{name} does not exist; add the file")
                else:
                    yield name, str(path)

    def _find(self, name: str) -> Path | None:
        """A path in task.yaml: relative to the task, or to the folder that holds `tasks/`."""
        for root in (self.folder, self.folder.parent.parent):
            if (root / name).exists():
                return root / name
        return None

    def _skip(self, data: TaskFile) -> str:
        if any(_kind(service) in LIVE_WEB for service in data.services):
            return "needs live web search, which needs a search key"
        if data.user_agent.enabled:
            return "needs a simulated user"
        if any(name.lower().endswith(VIDEO) for name in data.sandbox_files):
            return "needs a video, which claw-eval ships apart from its tasks"
        if data.env_snapshot_commands or any(tool.name in SANDBOX_TOOLS for tool in data.tools):
            return "needs claw-eval's container"
        if self.absent:
            return f"incomplete: {self.absent[0]}"
        return "" if self.has_verify else NEEDS_GRADERS


_YAML: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COMMAND = re.compile(r"mock_services/([^/\s]+)/")
_REFERENCE = re.compile(r"\{\{\s*(\d+)\s*(?:\.[^}]*)?\}\}")


def _kind(service: ServiceEntry) -> str:
    """The kind of a service: claw-eval may run one under another name (`ocr_t56`)."""
    found = _COMMAND.search(service.command)
    return found[1] if found else service.name


def _endpoints(data: TaskFile) -> dict[str, Endpoint]:
    return {
        entry.tool_name: Endpoint(path=urlsplit(entry.url).path, method=entry.method.upper())
        for entry in data.tool_endpoints
    }


def _tools(data: TaskFile) -> Iterator[ToolSpec]:
    endpoints = _endpoints(data)
    for tool in data.tools:
        if tool.name in endpoints:
            yield ToolSpec(
                name=tool.name,
                description=tool.description,
                input_schema=tool.input_schema,
                group=endpoints[tool.name].service,
            )


def _references(value: Any) -> Iterator[int]:
    """The step numbers that the strings in a value refer to."""
    if isinstance(value, str):
        yield from (int(number) for number in _REFERENCE.findall(value))
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _references(item)


def _fingerprint(folder: Path) -> str:
    """SHA-256 over the names and contents of all files of a task."""
    digest = sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if "__pycache__" not in name:
            digest.update(f"{name}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
