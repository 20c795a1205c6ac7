"""Tasks in claw-eval's task.yaml schema: the record, and the loader that names every mistake.

A task is a folder: `task.yaml`, `fixtures/`, and what grades an attempt: `verify.py` where the task is
ours or yours, claw-eval's `grader.py`, or the `judge_rubric` in task.yaml. `solutions.yaml` holds a
reference solution and wrong ones, as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ValidationError

from environments.claw.checkout import default_fixtures
from environments.claw.checks import (
    LIVE_WEB,
    SANDBOX_TOOLS,
    check_solutions,
    check_task,
    class_of,
    kind_of,
)
from environments.claw.clock import Clock
from environments.claw.corrections import corrected
from environments.claw.original.source import asks_judge
from environments.claw.schema import ServiceEntry, SolutionsFile, TaskFile, explain
from environments.claw.service import FixtureError, Service
from environments.claw.snapshot import SnapshotSpec
from environments.claw.task import REPLAY, ClawTask, Endpoint, ServiceSpec, Split
from environments.claw.user import UserSpec
from environments.claw.verify import broken
from environments.claw.yaml_file import read_yaml
from rollout.errors import UsageError
from rollout.types import JsonObject, ToolSpec

__all__ = ["OFFLINE", "Resources", "load_tasks"]

NO_CHECKOUT = "its grader.py needs src/claw_eval of claw-eval's repository beside tasks/"
NO_GRADER = "nothing to grade it with: no verify.py, no grader.py, no judge_rubric"
NEEDS_WEB = (
    "needs the real web: --services original with SERP_DEV_KEY, or a recording (--web-cache DIR)"
)
NEEDS_USER = "needs a simulated user: --user-model SPEC"
NEEDS_VIDEO = "needs a video, which claw-eval ships apart from its tasks"
NEEDS_IMAGE = "needs claw-eval's container image: a browser or ffmpeg looks at the result"

OURS = ("task.yml", "verify.py", "solutions.yaml")
"""Files that nobody would put into a folder that is no task of theirs."""

OFFLINE = "offline"
"""Tag of the tasks that do without the real web."""

MEDIA = re.compile(r"\b(ffprobe|ffmpeg|take_recording\.py)\b")
VIDEO = (".mp4", ".mov", ".avi", ".mkv", ".webm")

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Resources:
    """What tasks may need beside their own folder, where it is to be had."""

    web_cache: Path | None = None
    """A recording of the real web."""
    live_web: bool = False
    """Whether the original web service can search, and is used."""
    user: bool = False
    """Whether a model plays the simulated user."""


NO_RESOURCES = Resources()


def load_tasks(
    folder: Path, resources: Resources = NO_RESOURCES, *, patched: bool = False
) -> list[ClawTask]:
    """All tasks below a folder, by name, or the one that it is; `patched` corrects claw-eval's.

    Raises UsageError with one line for each thing that is wrong in any of them.
    """
    one = [folder] if (folder / "task.yaml").is_file() else []
    folders = one or sorted(path.parent for path in folder.glob("*/task.yaml"))
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    ours = {path.parent for name in OURS for path in folder.glob(f"*/{name}")}
    if not one and (unread := sorted(ours.difference(folders))):
        raise UsageError(f"{unread[0]}: no task.yaml there; write it, or remove the folder")
    if not folders:
        raise UsageError(f"{folder}: no */task.yaml; name the folder that holds the task folders")
    loaders = [_Loader(folder.resolve(), resources, patched) for folder in folders]
    tasks = [task for loader in loaders if (task := loader.load()) is not None]
    if problems := [problem for loader in loaders for problem in loader.problems]:
        raise UsageError("\n".join(problems))
    return tasks


class _Loader:
    """Reads one task folder and collects what is wrong with it."""

    def __init__(self, folder: Path, resources: Resources, patched: bool) -> None:
        self.folder = folder
        self.resources = resources
        self.patched = patched
        self.problems: list[str] = []
        self.absent: list[str] = []
        """What a task without verify.py lacks; it is skipped then: partial data sets are common."""
        self.verify = folder / "verify.py"
        self.grader = folder / "grader.py"
        self.checkout = folder.parent.parent

    def load(self) -> ClawTask | None:
        """The task; None when its file can't be made sense of. Good only if there are no `problems`."""
        data = self._read("task.yaml", TaskFile)
        if data is None:
            return None
        applied = corrected(data) if self.patched else ()
        self._report("task.yaml", check_task(data, self.folder.name, self.verify.is_file()))
        solutions = None
        if (self.folder / "solutions.yaml").exists():
            solutions = self._read("solutions.yaml", SolutionsFile)
        if solutions is not None:
            self._report("solutions.yaml", check_solutions(solutions, data))
        if self.verify.is_file() and (why := broken(self.verify)):
            self._report("verify.py", [f"{why}; mend it, it could grade nothing"])
        return self._task(data, solutions, applied)

    def _task(
        self, data: TaskFile, solutions: SolutionsFile | None, applied: tuple[str, ...]
    ) -> ClawTask:
        endpoints = {
            entry.tool_name: Endpoint(path=urlsplit(entry.url).path, method=entry.method.upper())
            for entry in data.tool_endpoints
        }
        services = tuple(self._services(data))
        tags = data.tags if any(service.live for service in services) else [*data.tags, OFFLINE]
        return ClawTask(
            id=data.task_id,
            prompt=data.prompt.text,
            tools=tuple(_tools(data, endpoints)),
            files=dict(self._files(data.workspace_files())),
            category=data.category,
            language=data.prompt.language,
            difficulty=data.difficulty,
            tags=tuple(dict.fromkeys(tags)),
            timeout=data.environment.timeout_seconds,
            max_turns=data.environment.max_turns,
            reference=solutions.reference.record("reference") if solutions else None,
            wrong=tuple(w.record(w.name) for w in solutions.wrong) if solutions else (),
            folder=str(self.folder),
            services=services,
            endpoints=endpoints,
            clock=data.clock,
            faults=tuple(fault.record() for fault in data.faults),
            rubric=data.judge_rubric,
            **self._grading(data),
            split=_split(data),
            **self._attached(data),
            user=_user(data),
            snapshot=self._snapshot(data),
            needs_shell=_needs_shell(data),
            corrections=applied,
            skip=self._skip(data),
            fingerprint=_fingerprint(self.folder),
        )

    def _grading(self, data: TaskFile) -> JsonObject:
        """Who grades: our verify.py, else claw-eval's grader.py, else a judge with the rubric."""
        if self.verify.is_file():
            return {"verify": str(self.verify)}
        if not self.grader.is_file():
            return {"judged": bool(data.judge_rubric)}
        return {
            "grader": str(self.grader),
            "checkout": str(self.checkout),
            "judged": asks_judge(self.grader, self.checkout),
        }

    def _read(self, name: str, model: type[M]) -> M | None:
        """A file of the task; None, and problems, when it is not what it should be."""
        path = self.folder / name
        try:
            return model.model_validate(read_yaml(path))
        except ValidationError as error:
            self._report(name, explain(error))
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            self._report(name, [f"line {line}: {error.problem}; correct the YAML"])
        except (OSError, ValueError, yaml.YAMLError) as error:
            self._report(name, [f"can't be read ({error}); write it as UTF-8 YAML"])
        return None

    def _report(self, file: str, problems: Iterable[str]) -> None:
        self.problems += [f"{self.folder / file}: {problem}" for problem in problems]

    def _lacks(self, problem: str) -> None:
        """A fixture is missing or broken: a mistake where verify.py needs it, else a reason to skip."""
        if self.verify.is_file():
            self._report("task.yaml", [problem])
        else:
            self.absent.append(problem)

    def _services(self, data: TaskFile) -> Iterator[ServiceSpec]:
        for n, service in enumerate(data.services):
            if (cls := class_of(service)) is None:
                continue
            env = self._env(service, cls)
            if kind_of(service) in LIVE_WEB and self.resources.web_cache is not None:
                env[REPLAY] = str(self.resources.web_cache)
            if self._runs_here(service):
                self._try(f"services[{n}]", cls, env)
            yield ServiceSpec(name=service.name, kind=kind_of(service), env=env)

    def _env(self, service: ServiceEntry, cls: type[Service]) -> dict[str, str]:
        """The service's settings, its fixtures' paths made absolute."""
        env = {key: value for key, value in service.env.items() if key != "PORT"}
        original = default_fixtures(self.checkout, kind_of(service))
        for variable, default in cls.fixtures.items():
            path = original.get(variable, self.folder / "fixtures" / default)
            if variable in env:
                path = self._find(env[variable]) or self._places(env[variable])[0]
            env[variable] = str(path)
        return env

    def _runs_here(self, service: ServiceEntry) -> bool:
        """A live service without a recording either is skipped, or runs elsewhere."""
        return kind_of(service) not in LIVE_WEB or self.resources.web_cache is not None

    def _try(self, field: str, cls: type[Service], env: dict[str, str]) -> None:
        """Open the service once, so that a bad fixture is found before anything starts."""
        try:
            cls(env, Clock())
        except FixtureError as error:
            self._lacks(f"{field}: {error}")
        except (ValueError, TypeError, AttributeError) as error:
            self._lacks(f"{field}: {', '.join(env.values())}: {error}; correct the fixture")

    def _files(self, names: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        for field, name in names:
            path = self._find(name)
            if path is not None and path.is_file():
                yield name, str(path)
            else:
                self._lacks(f"{field}: there is no file {name}; add it")

    def _attached(self, data: TaskFile) -> JsonObject:
        """Attachments: text that follows the prompt, and images in the workspace."""
        names = data.prompt.attachments
        texts = [name for name in names if (guess_type(name)[0] or "").startswith("text/")]
        paths = {Path(name).name: self._find(name) for name in texts}
        documents = {name: str(path) for name, path in paths.items() if path is not None}
        images = tuple(name for name in names if name not in texts)
        return {"documents": documents, "images": images}

    def _snapshot(self, data: TaskFile) -> SnapshotSpec:
        local = {name: str(self._find(name) or "") for name in data.local_grader_files}
        return SnapshotSpec(
            commands=tuple(data.env_snapshot_commands),
            files=tuple(data.env_snapshot_files),
            grader_files=dict(self._files(data.grader_files())),
            local_files={name: path for name, path in local.items() if path},
            timeout=data.environment.env_snapshot_timeout,
        )

    def _find(self, name: str) -> Path | None:
        """The file or folder that a path in task.yaml means; None when there is none."""
        return next((path for path in self._places(name) if path.exists()), None)

    def _places(self, name: str) -> tuple[Path, ...]:
        """Where a path in task.yaml may lead, the likeliest first.

        It is relative to the task, or to the folder that holds `tasks/`, which may have another name.
        """
        places = (self.folder / name, self.folder.parent.parent / name)
        if name.startswith("tasks/"):
            return (self.folder.parent / name.removeprefix("tasks/"), *places)
        return places

    def _skip(self, data: TaskFile) -> str:
        live = any(kind_of(service) in LIVE_WEB for service in data.services)
        if live and not self.resources.live_web and self.resources.web_cache is None:
            return NEEDS_WEB
        if data.user_agent.enabled and not self.resources.user:
            return NEEDS_USER
        if any(name.lower().endswith(VIDEO) for _, name in data.workspace_files()):
            return NEEDS_VIDEO
        if any(MEDIA.search(command) for command in data.env_snapshot_commands):
            return NEEDS_IMAGE
        if self.absent:
            return f"incomplete: {self.absent[0]}"
        if self.verify.is_file():
            return ""
        if self.grader.is_file():
            return "" if (self.checkout / "src" / "claw_eval").is_dir() else NO_CHECKOUT
        return "" if data.judge_rubric else NO_GRADER


def _split(data: TaskFile) -> Split:
    if data.user_agent.enabled:
        return "multi_turn"
    return "multimodal" if "multimodal" in data.tags else "general"


def _user(data: TaskFile) -> UserSpec | None:
    user = data.user_agent
    if not user.enabled:
        return None
    suffix = user.system_prompt_suffix.strip()
    return UserSpec(persona=user.persona, max_rounds=user.max_rounds, suffix=suffix)


def _needs_shell(data: TaskFile) -> bool:
    if data.user_agent.enabled:
        return False
    looked_at = data.env_snapshot_commands or data.env_snapshot_files
    return bool(looked_at) or any(tool.name in SANDBOX_TOOLS for tool in data.tools)


def _tools(data: TaskFile, endpoints: dict[str, Endpoint]) -> Iterator[ToolSpec]:
    """The tools that are served here, grouped by service."""
    for tool in data.tools:
        if tool.name in endpoints:
            yield ToolSpec(
                name=tool.name,
                description=tool.description,
                input_schema=tool.input_schema,
                group=endpoints[tool.name].prefix,
            )


def _fingerprint(folder: Path) -> str:
    """SHA-256 over the names and contents of all files of a task."""
    digest = sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        if "__pycache__" not in name:
            digest.update(f"{name}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
    return digest.hexdigest()
