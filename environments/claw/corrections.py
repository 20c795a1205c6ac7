"""`--fidelity patched`: named corrections of claw-eval's tasks, kept as data in corrections.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml
from pydantic import ConfigDict

from environments.claw.schema import EndpointEntry, Moment, ServiceEntry, Strict, TaskFile
from rollout.types import JsonObject

__all__ = ["Correction", "corrected", "corrections"]

FOLDER = Path(__file__).parent
NOTHING = str(FOLDER / "nothing.json")
"""A fixture without entries."""


class Correction(Strict):
    """One entry of corrections.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    tasks: list[str]
    what: str
    why: str
    clock: Moment = ""
    env: dict[str, dict[str, str]] = {}
    add_services: dict[str, dict[str, str | None]] = {}
    schemas: dict[str, JsonObject] = {}
    endpoints: dict[str, str] = {}
    remove_tools: list[str] = []

    def apply(self, data: TaskFile) -> None:
        """Change a task as it was read."""
        data.clock = self.clock or data.clock
        for service in data.services:
            service.env |= self.env.get(service.name, {})
        for name, variables in self.add_services.items():
            env = {key: NOTHING if path is None else path for key, path in variables.items()}
            data.services.append(ServiceEntry(name=name, env=env))
        for tool in data.tools:
            tool.input_schema = self.schemas.get(tool.name, tool.input_schema)
        for endpoint in data.tool_endpoints:
            endpoint.url = self.endpoints.get(endpoint.tool_name, endpoint.url)
        data.tools = [tool for tool in data.tools if tool.name not in self.remove_tools]
        data.tool_endpoints = [entry for entry in data.tool_endpoints if self._keeps(entry)]

    def _keeps(self, endpoint: EndpointEntry) -> bool:
        return endpoint.tool_name not in self.remove_tools


@cache
def corrections() -> Mapping[str, tuple[Correction, ...]]:
    """Task id -> its corrections, in the order of the file."""
    found: dict[str, tuple[Correction, ...]] = {}
    for entry in yaml.safe_load((FOLDER / "corrections.yaml").read_text("utf-8")):
        correction = Correction.model_validate(entry)
        for task in correction.tasks:
            found[task] = (*found.get(task, ()), correction)
    return found


def corrected(data: TaskFile) -> tuple[str, ...]:
    """Apply what there is for a task; the ids of what was applied."""
    applied = corrections().get(data.task_id, ())
    for correction in applied:
        correction.apply(data)
    return tuple(correction.id for correction in applied)
