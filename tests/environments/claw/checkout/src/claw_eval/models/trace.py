from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Message(BaseModel):
    role: str
    content: list[dict[str, Any]]
    reasoning_content: str | None = None


class TraceMessage(BaseModel):
    trace_id: str
    message: Message


class ToolDispatch(BaseModel):
    trace_id: str
    tool_use_id: str
    tool_name: str
    endpoint_url: str
    request_body: dict[str, Any]
    response_status: int
    response_body: Any
    latency_ms: float


class MediaLoad(BaseModel):
    trace_id: str
    source_path: str


class DimensionScores(BaseModel):
    completion: float = 0.0
    robustness: float = 0.0
    communication: float = 0.0
    safety: float = 1.0
