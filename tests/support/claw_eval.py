"""For tests against a real claw-eval checkout: a policy, a judge, and claw-eval's own pipeline."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from aiohttp import web

from environments.claw import Claw
from environments.claw.task import ClawTask
from rollout.environment import Surface, World
from rollout.gateway.upstream import ModelReply, ModelRequest, Upstream
from rollout.sandbox import Sandbox
from rollout.types import JsonObject, Task, ToolReply, Trace, Usage

CHECKOUT = Path(os.environ.get("ANYHARNESS_CLAW_EVAL", "/nowhere"))
needs_checkout = pytest.mark.skipif(
    not (CHECKOUT / "src" / "claw_eval").is_dir(),
    reason="no claw-eval checkout: set ANYHARNESS_CLAW_EVAL to one",
)

EXAMPLES = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


class Thorough(Upstream):
    """Calls every tool once, the first one wrongly as well, and answers with the task's solution."""

    model = "thorough"

    async def complete(self, request: ModelRequest) -> ModelReply:
        body, task = request.body, request.task
        assert isinstance(task, ClawTask)
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        tools = [tool["function"] for tool in body.get("tools") or ()]
        calls = [(tool["name"], example(tool["parameters"])) for tool in tools]
        if not tools or turn >= 2:
            message: JsonObject = {"role": "assistant", "content": solution(task)}
        elif turn == 1:
            message = asking("Once more.", [(tools[0]["name"], {"no_such_field": []})], turn)
        else:
            message = asking("I look at everything.", calls, turn)
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return ModelReply(body={"choices": [choice]}, usage=Usage(prompt=1, completion=1))


def asking(text: str, calls: list[tuple[str, Any]], turn: int) -> JsonObject:
    tool_calls = [
        {
            "id": f"call_{turn}_{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for n, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": text, "tool_calls": tool_calls}


def example(schema: JsonObject) -> Any:
    """Arguments that fit a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    if kind != "object" or "properties" not in schema:
        return EXAMPLES.get(kind, "2026-03-02")
    return {name: example(schema["properties"][name]) for name in schema.get("required", ())}


def solution(task: ClawTask) -> str:
    data = yaml.safe_load((Path(task.folder) / "task.yaml").read_text("utf-8"))
    return f"{data.get('reference_solution') or 'Done.'}\n\n{task.prompt}"


class Canned(World):
    """Stands in for what can't run here: services of the live web, a sandbox, a simulated user."""

    def __init__(self, task: ClawTask) -> None:
        self._task = task
        self._words = iter(["[user_agent]\nAbout 30, I think."])
        self.surface = Surface(prompt=task.prompt, tools=task.tools, user=task.user is not None)

    async def call(self, name: str, arguments: Any) -> ToolReply:
        return ToolReply(body={"results": [{"title": name, "url": "http://example.org"}]})

    async def reply(self, answer: str) -> str | None:
        return next(self._words, None)

    async def snapshot(self, sandbox: Sandbox) -> JsonObject:
        asked = self._task.snapshot
        world: JsonObject = {"audit": {spec.name: {"calls": []} for spec in self._task.services}}
        ran = {"exit_code": 0, "stdout": "PASS 3/3\n", "stderr": ""}
        found = {f"cmd:{command}": ran for command in asked.commands}
        read = {"content": "nothing much", "encoding": "utf-8", "mime_type": "text/plain"}
        found |= {f"file:{path}": read for path in asked.files if "*" not in path}
        return world | {"env_snapshot": found} if found else world


class Anywhere(Claw):
    """Tasks that run here run; the others have a canned world."""

    def __init__(self, canned: set[str]) -> None:
        super().__init__()
        self._canned = canned

    @asynccontextmanager
    async def open(self, task: Task, seed: int) -> AsyncIterator[World]:
        if task.id in self._canned:
            assert isinstance(task, ClawTask)
            yield Canned(task)
            return
        async with super().open(task, seed) as world:
            yield world


class HashJudge:
    """A model server whose verdict is a hash of the question: any other question, another verdict."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0

    async def __aenter__(self) -> HashJudge:
        app = web.Application(client_max_size=2**30)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        question = json.dumps((await request.json())["messages"], sort_keys=True)
        score = int(hashlib.sha256(question.encode()).hexdigest()[:3], 16) / 0xFFF
        content = json.dumps({"score": score, "reasoning": "by its hash"})
        message = {"role": "assistant", "content": content}
        return web.json_response(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "hash",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        )


def events(task: ClawTask, trace: Trace) -> Iterator[JsonObject]:
    """A ReAct attempt as claw-eval's own loop would have traced it (runner/loop.py)."""
    head = {"trace_id": "t"}
    yield {"type": "trace_start", **head, "task_id": task.id, "model": "m"}
    last = next(call for call in reversed(trace.calls) if call.kind == "main")
    request, reply = msgspec.json.decode(last.request), msgspec.json.decode(last.reply)
    prompt = {"role": "user", "content": task.prompt}
    chat = [prompt, *request["messages"][2:], reply["choices"][0]["message"]]
    answered = iter(trace.tool_calls)
    results: list[JsonObject] = []
    for message in chat:
        if message["role"] == "tool":
            call = next(answered)
            results.append(
                {
                    "type": "tool_result",
                    "tool_use_id": message["tool_call_id"],
                    "content": [
                        {"type": "text", "text": json.dumps(call.reply, ensure_ascii=False)}
                    ],
                    "is_error": call.status >= 400,
                }
            )
            continue
        if results:
            yield {"type": "message", **head, "message": {"role": "user", "content": results}}
            results = []
        content = [{"type": "text", "text": message["content"]}]
        for asked in message.get("tool_calls") or ():
            function = asked["function"]
            use = {"name": function["name"], "input": json.loads(function["arguments"])}
            content.append({"type": "tool_use", "id": asked["id"], **use})
        yield {"type": "message", **head, "message": {"role": message["role"], "content": content}}
    for call in trace.tool_calls:
        yield {
            "type": "tool_dispatch",
            **head,
            "tool_use_id": "x",
            "tool_name": call.name,
            "endpoint_url": "",
            "request_body": call.arguments,
            "response_status": call.status,
            "response_body": call.reply,
        }
    for name, audit in trace.world.get("audit", {}).items():
        yield {
            "type": "audit_snapshot",
            **head,
            "service_name": name,
            "audit_url": "",
            "audit_data": audit,
        }


PIPELINE = """
import contextlib, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1] + "/src")
from claw_eval.cli import _grade_with_optional_params
from claw_eval.graders.llm_judge import LLMJudge
from claw_eval.graders.registry import get_grader
from claw_eval.models.scoring import compute_task_score, is_pass
from claw_eval.models.task import TaskDefinition
from claw_eval.trace.reader import load_trace
def grade(job):
    _, messages, dispatches, media, _, audit = load_trace(job["trace"])
    folder = Path(job["folder"])
    task = TaskDefinition.from_yaml(folder / "task.yaml")
    grader = get_grader(task.task_id, tasks_dir=folder.parent, task_dir=folder)
    judge = LLMJudge(model_id="hash", api_key="none", base_url=job["judge"])
    scores, calls = _grade_with_optional_params(
        grader, messages, dispatches, task, audit_data=audit, judge=judge,
        media_events=media, env_snapshot=job["env_snapshot"],
    )
    total = compute_task_score(scores)
    parts = {k: getattr(scores, k) for k in ("completion", "robustness", "communication", "safety")}
    return {"score": total, "passed": is_pass(total), "parts": parts, "calls": len(calls)}
for line in sys.stdin:
    with contextlib.redirect_stdout(sys.stderr):
        try:
            found = grade(json.loads(line))
        except Exception as error:
            found = {"error": repr(error)}
    print(json.dumps(found))
"""


async def pipeline(attempts: list[tuple[ClawTask, Trace]], judge: str, folder: Path) -> list[Any]:
    """What claw-eval's own code says of the attempts, in a process that is nothing of ours."""
    jobs = []
    for n, (task, trace) in enumerate(attempts):
        path = folder / f"{n}.jsonl"
        path.write_text("".join(json.dumps(event) + "\n" for event in events(task, trace)))
        snapshot = trace.world.get("env_snapshot")
        job = {"trace": str(path), "folder": task.folder, "judge": judge, "env_snapshot": snapshot}
        jobs.append(json.dumps(job))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-B", "-X", "utf8", "-c", PIPELINE, str(CHECKOUT)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=CHECKOUT,
    )
    out, err = await process.communicate("".join(f"{job}\n" for job in jobs).encode())
    assert process.returncode == 0, err.decode()[-2000:]
    return [json.loads(line) for line in out.splitlines()]
