"""What does not fit together in a task. Each problem reads `field.path: what is wrong; remedy`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from environments.claw.schema import ServiceEntry, SolutionsFile, StepEntry, TaskFile, misspelt
from environments.claw.service import Service, service_class
from rollout import plugins
from rollout.errors import UsageError

__all__ = [
    "LIVE_WEB",
    "SANDBOX_TOOLS",
    "check_solutions",
    "check_task",
    "class_of",
    "kind_of",
]

LIVE_WEB = frozenset({"web_real", "web_real_injection"})
"""claw-eval's services that search the real web."""
SANDBOX_TOOLS = frozenset(
    {"Bash", "Read", "Write", "Edit", "Glob", "Grep", "BrowserScreenshot", "ReadMedia", "Download"}
)
"""Tools that claw-eval's container brings along; a task lists them without an endpoint."""
SECRET = frozenset({"task.yaml", "verify.py", "solutions.yaml"})


def kind_of(service: ServiceEntry) -> str:
    """The kind of a service: claw-eval may run one under another name (`ocr_t56`)."""
    found = re.search(r"mock_services/([^/\s]+)/", service.command)
    return found[1] if found else service.name


def class_of(service: ServiceEntry) -> type[Service] | None:
    """The class that serves it here; None for an unknown one."""
    try:
        return service_class(kind_of(service))
    except UsageError:
        return None


def check_task(data: TaskFile, folder: str, strict: bool) -> Iterator[str]:
    """The problems of a task.yaml in a folder of this name.

    `strict` also wants every route to exist and keys to be spelt well, as not all of claw-eval's own do.
    """
    if strict:
        yield from misspelt(data)
    if data.task_id != folder:
        yield f"task_id: is {data.task_id!r}; name it like its folder, {folder}"
    yield from _tools(data)
    yield from _services(data)
    yield from _endpoints(data, strict)
    yield from _faults(data)
    for field, name in (*data.workspace_files(), *data.grader_files()):
        path = Path(name)
        if path.is_absolute() or ".." in path.parts:
            yield f"{field}: {name!r} leaves the workspace; use a path below the task"
    for field, name in data.workspace_files():
        if Path(name).name in SECRET:
            yield f"{field}: {name!r} is not for the agent to see; remove it"


def check_solutions(solutions: SolutionsFile, data: TaskFile) -> Iterator[str]:
    """The problems of a task's solutions.yaml."""
    played = {"reference": solutions.reference}
    played |= {f"wrong[{n}]": wrong for n, wrong in enumerate(solutions.wrong)}
    tools = [tool.name for tool in data.tools]
    places: dict[str, list[str]] = defaultdict(list)
    for name, solution in played.items():
        for n, step in enumerate(solution.steps):
            if step.call not in tools:
                places[step.call].append(f"{name}.steps[{n}].call")
    for call, where in places.items():
        more = f" (the same in {', '.join(where[1:])})" if len(where) > 1 else ""
        yield f"{where[0]}: {_unknown('tool', call, tools)}{more}"
    for name, solution in played.items():
        yield from _steps(name, solution.steps)


def _tools(data: TaskFile) -> Iterator[str]:
    names = [tool.name for tool in data.tools]
    endpoints = {endpoint.tool_name for endpoint in data.tool_endpoints}
    for n, name in enumerate(names):
        if name in names[:n]:
            yield f"tools[{n}].name: {name!r} is there twice; rename or remove one"
        if name not in endpoints | SANDBOX_TOOLS:
            yield f"tools[{n}].name: {name!r} has no endpoint; add it to tool_endpoints"


def _services(data: TaskFile) -> Iterator[str]:
    prefixes: list[str] = []
    for n, service in enumerate(data.services):
        kind = kind_of(service)
        if (cls := class_of(service)) is None:
            known = plugins.available("environments.claw.services")
            yield f"services[{n}].name: {_unknown('service', kind, known)}"
        elif cls.prefix in prefixes:
            yield f"services[{n}].name: {cls.prefix} is there twice; remove one"
        else:
            prefixes.append(cls.prefix)


def _endpoints(data: TaskFile, strict: bool) -> Iterator[str]:
    names = [tool.name for tool in data.tools]
    classes = [cls for service in data.services if (cls := class_of(service))]
    for n, endpoint in enumerate(data.tool_endpoints):
        if endpoint.tool_name not in names:
            what = _unknown("tool", endpoint.tool_name, names)
            yield f"tool_endpoints[{n}].tool_name: {what}"
        if len(classes) < len(data.services):
            continue  # Behind an unknown service, which is reported already.
        path = urlsplit(endpoint.url).path
        serving = next((cls for cls in classes if path.startswith(f"/{cls.prefix}/")), None)
        if serving is None:
            what = f"no service serves {path!r}; add the service to services"
            yield f"tool_endpoints[{n}].url: {what}"
        elif strict and path not in serving.routes:
            yield f"tool_endpoints[{n}].url: {_unknown('route', path, serving.routes)}"


def _faults(data: TaskFile) -> Iterator[str]:
    tools = ["*", *(tool.name for tool in data.tools)]
    services = ["*", *(service.name for service in data.services)]
    for n, fault in enumerate(data.faults):
        if fault.tool and fault.tool not in tools:
            yield f"faults[{n}].tool: {_unknown('tool', fault.tool, tools)}"
        if fault.service and fault.service not in services:
            yield f"faults[{n}].service: {_unknown('service', fault.service, services)}"


def _steps(field: str, steps: list[StepEntry]) -> Iterator[str]:
    for n, step in enumerate(steps):
        for number in _references(step.arguments):
            if not 1 <= number <= n:
                what = f"refers to step {number}; name an earlier one, counted from 1"
                yield f"{field}.steps[{n}].arguments: {what}"
        if step.back > n:
            yield f"{field}.steps[{n}].back: only {n} steps come before; make it {n} at most"


def _references(value: Any) -> Iterator[int]:
    """The step numbers in the `{{N.path}}` of a value's strings."""
    if isinstance(value, str):
        yield from (int(number) for number in re.findall(r"\{\{\s*(\d+)[\s.}]", value))
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _references(item)


def _unknown(noun: str, name: str, known: Iterable[str]) -> str:
    known = list(known)
    if close := get_close_matches(name, known, n=1):
        return f"no {noun} {name!r}; did you mean {close[0]!r}?"
    return f"no {noun} {name!r}; known: {', '.join(known) or 'none'}"
