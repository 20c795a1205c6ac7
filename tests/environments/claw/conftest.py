"""Small fixtures: services opened at a fixed time, and task folders written on the spot."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from environments.claw.clock import Clock, parse_time
from environments.claw.service import Service, service_class

START = "2026-03-02T09:00:00Z"

INBOX = [
    {
        "message_id": "m1",
        "from": "ann@example.com",
        "subject": "Lunch",
        "date": "2026-03-01T12:00:00Z",
        "is_read": False,
        "labels": ["inbox"],
        "body": "At noon?",
    },
    {
        "message_id": "m2",
        "from": "bob@example.com",
        "subject": "Old news",
        "date": "2026-02-01T12:00:00Z",
        "is_read": True,
        "labels": [],
        "body": "Long ago.",
    },
]

MAIL_TASK: dict[str, Any] = {
    "task_id": "mail",
    "task_name": "Mail",
    "category": "communication",
    "difficulty": "easy",
    "tags": ["general"],
    "prompt": {"text": "Answer Ann.", "language": "en"},
    "clock": START,
    "environment": {"timeout_seconds": 120, "max_turns": 8},
    "services": [{"name": "gmail"}],
    "tools": [
        {"name": "list_mail", "description": "List mail.", "input_schema": {"type": "object"}},
        {"name": "get_mail"},
        {"name": "send_mail"},
    ],
    "tool_endpoints": [
        {"tool_name": "list_mail", "url": "http://localhost:9100/gmail/messages"},
        {"tool_name": "get_mail", "url": "http://localhost:9100/gmail/messages/get"},
        {"tool_name": "send_mail", "url": "http://localhost:9100/gmail/send", "method": "POST"},
    ],
}

VERIFY = """
from environments.claw.evidence import Evidence, Score

def verify(e: Evidence) -> Score:
    score = Score()
    score.add(1, len(e.audit["gmail"]["sent_messages"]) == 1, "sends one mail")
    return score
"""

OpenService = Callable[..., Service]
WriteTask = Callable[..., Path]


@pytest.fixture
def open_service(tmp_path: Path) -> OpenService:
    """`open_service("gmail", [rows], ...)`: one list of rows for each fixture that the service has."""

    def open_it(kind: str, *rows: Any, clock: Clock | None = None, **env: str) -> Service:
        cls = service_class(kind)
        for (variable, default), content in zip(cls.fixtures.items(), rows, strict=False):
            path = tmp_path / default
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content))
            env[variable] = str(path)
        return cls(env, clock or Clock(parse_time(START)))

    return open_it


@pytest.fixture
def write_task(tmp_path: Path) -> WriteTask:
    """Writes the mail task, with changes, and gives its folder."""

    def write(
        name: str = "mail",
        *,
        verify: str | None = VERIFY,
        solutions: Any = None,
        inbox: Any = INBOX,
        **changes: Any,
    ) -> Path:
        folder = tmp_path / "tasks" / name
        (folder / "fixtures" / "gmail").mkdir(parents=True)
        data = {**MAIL_TASK, "task_id": name, **changes}
        data = {key: value for key, value in data.items() if value is not None}
        (folder / "task.yaml").write_text(yaml.safe_dump(data, allow_unicode=True))
        (folder / "fixtures" / "gmail" / "inbox.json").write_text(json.dumps(inbox))
        if verify is not None:
            (folder / "verify.py").write_text(verify)
        if solutions is not None:
            (folder / "solutions.yaml").write_text(yaml.safe_dump(solutions))
        return folder

    return write
