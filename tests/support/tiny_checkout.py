"""A checkout in claw-eval's layout, of our own making: one server program and a few tasks.

The server is a small ASGI application that uvicorn runs, as claw-eval's are. Beside what a mail service
does it has routes that misbehave.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

SERVER = """
import json, os, subprocess, sys, urllib.request
import uvicorn

path = os.environ["GMAIL_FIXTURES"]
if os.environ.get("BROKEN"):
    print("line one", file=sys.stderr)
    sys.exit("no mail today")
inbox, calls, sent = [], [], []

def load():
    calls.clear(), sent.clear()
    inbox[:] = json.loads(open(path).read())

def answer(method, url, body):
    if url == "/gmail/audit":
        return 200, {"calls": calls, "sent_messages": sent}
    if url == "/gmail/reset":
        load()
        return 200, {"status": "reset"}
    if url == "/gmail/messages":
        reply = {"messages": inbox, "total": len(inbox)}
    elif url == "/gmail/send":
        sent.append(body)
        reply = {"status": "sent"}
    elif url == "/gmail/about":
        child = subprocess.Popen(["sleep", "600"])
        reply = {"pid": os.getpid(), "child": child.pid, "env": dict(os.environ)}
    elif url == "/gmail/noise":
        print("x" * 300_000, file=sys.stderr)
        reply = {}
    elif url == "/gmail/die":
        os._exit(3)
    elif url == "/gmail/crash":
        return 500, None
    else:
        return 404, {"detail": "Not Found"}
    calls.append({"endpoint": url, "request_body": body, "response_body": reply, "timestamp": ""})
    return 200, reply

async def app(scope, receive, send):
    body, more = b"", True
    while more:
        event = await receive()
        body, more = body + event.get("body", b""), event.get("more_body", False)
    status, reply = answer(scope["method"], scope["path"], json.loads(body or b"null"))
    text = b"Internal Server Error" if reply is None else json.dumps(reply).encode()
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": text})

load()
if __name__ == "__main__":
    uvicorn.run(app, host="0.0.0.0", port=int(os.environ.get("PORT", "9100")))
"""

DEFAULT = """
FIXTURES_PATH = Path(os.environ.get(
    "CRM_FIXTURES",
    str(Path(__file__).resolve().parent.parent.parent / "tasks" / "T902zh_twin" / "fixtures" / "c.json"),
))
"""

MAIL = {
    "message_id": "m1",
    "from": "ann@example.com",
    "subject": "Lunch",
    "date": "2026-03-01T12:00:00Z",
    "is_read": False,
    "labels": ["inbox"],
    "body": "At noon?",
}


VERIFY = """
from environments.claw.evidence import Evidence, Score

def verify(e: Evidence) -> Score:
    score = Score()
    score.add(1, e.answer, "answers")
    score.add(1, all(call.status == 200 for call in e.calls()), "every call works")
    return score
"""
VERIFIED = ("T901_mail", "T905_files", "C01zh_talk")
"""Tasks that are graded without a judge."""

TASKS: dict[str, dict[str, Any]] = {
    "T901_mail": {
        "tags": ["general"],
        "services": [
            {
                "name": "gmail",
                "command": "python mock_services/gmail/server.py",
                "port": 9100,
                "reset_endpoint": "http://localhost:9100/gmail/reset",
                "env": {"GMAIL_FIXTURES": "tasks/T901_mail/fixtures/gmail/inbox.json"},
            }
        ],
        "tools": [{"name": "list_mail"}, {"name": "send_mail", "input_schema": {
            "type": "object", "properties": {n: {"type": "string"} for n in ("to", "subject", "body")}
        }}],
        "tool_endpoints": [
            {"tool_name": "list_mail", "url": "http://localhost:9100/gmail/messages"},
            {"tool_name": "send_mail", "url": "http://localhost:9100/gmail/send"},
        ],
    },
    "T902zh_twin": {"prompt": {"text": "你好", "language": "zh"}},
    "T903_export": {
        "services": [{"name": "crm", "command": "python mock_services/crm/server.py"}],
        "tools": [{"name": "list_customers"}],
        "tool_endpoints": [{"tool_name": "list_customers", "url": "/crm/customers"}],
    },
    "T904_web": {
        "services": [{"name": "web_real", "command": "python mock_services/web_real/server.py"}],
        "tools": [{"name": "search"}],
        "tool_endpoints": [{"tool_name": "search", "url": "http://localhost:9114/web/search"}],
    },
    "T905_files": {
        "prompt": {"text": "Write it.", "language": "en", "attachments": ["fixtures/a.txt", "b.png"]},
        "sandbox_files": ["fixtures/a.txt"],
        "sandbox_grader_files": ["fixtures/verify.py"],
        "local_grader_files": ["fixtures/truth.txt"],
        "env_snapshot_commands": ["python /workspace/fixtures/verify.py", "cat kept.txt"],
        "env_snapshot_files": ["/workspace/*.txt"],
    },
    "C01zh_talk": {
        "tags": ["general", "user_agent"],
        "user_agent": {
            "enabled": True,
            "persona": "Ann, in a hurry",
            "max_rounds": 2,
            "system_prompt_suffix": "Ask first.",
        },
    },
    "M001_clip": {"tags": ["multimodal"], "sandbox_files": ["fixtures/clip.mp4"]},
}  # fmt: skip


def write_checkout(folder: Path) -> Path:
    """The checkout, below an empty folder."""
    for kind, text in (("gmail", SERVER), ("crm", DEFAULT)):
        script = folder / "mock_services" / kind / "server.py"
        script.parent.mkdir(parents=True)
        script.write_text(text)
    for name, fields in TASKS.items():
        task = folder / "tasks" / name
        (task / "fixtures").mkdir(parents=True)
        data = {"task_id": name, "prompt": {"text": "Do it.", "language": "en"}, **fields}
        data.setdefault("judge_rubric", "Is it done?")
        (task / "task.yaml").write_text(yaml.safe_dump(data, allow_unicode=True))
        if name in VERIFIED:
            (task / "verify.py").write_text(VERIFY)
    files = folder / "tasks" / "T905_files"
    (files / "fixtures" / "a.txt").write_text("attached")
    (files / "fixtures" / "truth.txt").write_text("42")
    (files / "fixtures" / "verify.py").write_text("print('verified')")
    (files / "b.png").write_bytes(b"\x89PNG")
    (folder / "tasks" / "T902zh_twin" / "fixtures" / "c.json").write_text(json.dumps([]))
    inbox = folder / "tasks" / "T901_mail" / "fixtures" / "gmail" / "inbox.json"
    inbox.parent.mkdir()
    inbox.write_text(json.dumps([MAIL]))
    return folder
