from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel


class Prompt(BaseModel):
    text: str


class Endpoint(BaseModel):
    tool_name: str
    url: str


class TaskDefinition(BaseModel):
    task_id: str
    prompt: Prompt
    tool_endpoints: list[Endpoint] = []

    @classmethod
    def from_yaml(cls, path: Path) -> TaskDefinition:
        return cls.model_validate(yaml.safe_load(open(path)))

    def get_endpoint_map(self) -> dict[str, Endpoint]:
        return {endpoint.tool_name: endpoint for endpoint in self.tool_endpoints}
