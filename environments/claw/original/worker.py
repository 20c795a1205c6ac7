"""Grades one attempt with claw-eval's own code: the program that `grading.py` starts, never imported.

    python -I worker.py CHECKOUT

It reads a request from stdin and answers on stdout, one JSON object a line. Whenever the grader asks
its judge, it sends `{"ask": messages}` first and reads `{"reply": text}`: the model is asked by the
parent, so this process needs neither a key nor a network. Then comes `{"scores": ...}` or
`{"error": ...}`.

The judge is the checkout's own LLMJudge, prompts and all; only the OpenAI client below it is replaced.
"""

import io
import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

CPU_SECONDS = 60
MEMORY = 4 * 2**30
"""Address space, bytes. A grader takes about 200 MB."""
FILE = 256 * 2**20
"""Of any file that it writes, bytes."""


class Pipe:
    """The line to the parent. Whatever a grader prints goes to stderr instead."""

    def __init__(self) -> None:
        self._in: io.BufferedReader = os.fdopen(os.dup(0), "rb")
        self._out: io.BufferedWriter = os.fdopen(os.dup(1), "wb")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)

    def read(self) -> Any:
        return json.loads(self._in.readline())

    def write(self, message: Any) -> None:
        self._out.write(json.dumps(message, default=str).encode() + b"\n")
        self._out.flush()


def install_client(pipe: Pipe) -> None:
    """Put a module in OpenAI's place whose client asks the parent."""

    def create(*, messages: Any, **_: Any) -> Any:
        pipe.write({"ask": messages})
        message = SimpleNamespace(role="assistant", content=pipe.read()["reply"])
        return SimpleNamespace(choices=[SimpleNamespace(message=message, finish_reason="stop")])

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    module: Any = ModuleType("openai")
    module.OpenAI = lambda **_: client
    sys.modules["openai"] = module
    # They sleep between the tries at a judge; the parent's own retries wait as long as is useful.
    time.sleep = lambda _: None


def grade(request: Any) -> Any:
    """Run the task's grader as src/claw_eval/cli.py does."""
    from claw_eval.graders.llm_judge import LLMJudge
    from claw_eval.graders.registry import get_grader
    from claw_eval.models.scoring import compute_task_score, is_pass
    from claw_eval.models.task import TaskDefinition
    from claw_eval.models.trace import MediaLoad, ToolDispatch, TraceMessage

    folder = Path(request["folder"])
    task = TaskDefinition.from_yaml(folder / "task.yaml")
    urls = {tool: endpoint.url for tool, endpoint in task.get_endpoint_map().items()}
    head = {"trace_id": request["episode"]}
    messages = [TraceMessage(**head, message=message) for message in request["messages"]]
    dispatches = [
        ToolDispatch(**head, endpoint_url=urls.get(call["tool_name"], ""), **call)
        for call in request["dispatches"]
    ]
    snapshot = request["env_snapshot"]
    optional = {} if snapshot is None else {"env_snapshot": snapshot}
    judge = LLMJudge(model_id=request["model"], api_key="none")
    scores = get_grader(task.task_id, tasks_dir=folder.parent, task_dir=folder).grade(
        messages,
        dispatches,
        task,
        audit_data=request["audit"],
        judge=judge,
        media_events=[MediaLoad(**head, **event) for event in request["media"]],
        **optional,
    )
    total = compute_task_score(scores)
    return {
        "scores": scores.model_dump(),
        "task_score": total,
        "passed": is_pass(total),
        "judge_calls": judge.get_call_log(),
    }


def failure(error: BaseException, checkout: Path) -> dict[str, str]:
    """Where it broke, in one line, and the whole traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).is_relative_to(checkout)]
    place = inside[-1] if inside else frames[-1]
    (what,) = traceback.format_exception_only(error)[-1:]
    line = " ".join(f"{place.filename}:{place.lineno}: {what}".split())
    return {"line": line, "traceback": traceback.format_exc()}


def main() -> None:
    checkout = Path(sys.argv[1])
    for limit, value in (
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    pipe = Pipe()
    sys.path.insert(0, str(checkout / "src"))
    install_client(pipe)
    try:
        answer = grade(pipe.read())
    except BaseException as error:  # a grader may even call sys.exit()
        answer = {"error": failure(error, checkout)}
    pipe.write(answer)


if __name__ == "__main__":
    main()
