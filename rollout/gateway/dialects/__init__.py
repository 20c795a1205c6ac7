"""The three wire formats of model calls. A closed set: harnesses speak these, and no others."""

from __future__ import annotations

from rollout.gateway.dialect import Dialect
from rollout.gateway.dialects.chat import ChatDialect
from rollout.gateway.dialects.messages import MessagesDialect
from rollout.gateway.dialects.responses import ResponsesDialect
from rollout.types import DialectName

__all__ = ["DIALECTS"]

DIALECTS: dict[DialectName, Dialect] = {
    "chat": ChatDialect(),
    "responses": ResponsesDialect(),
    "messages": MessagesDialect(),
}
