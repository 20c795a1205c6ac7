"""Runs a task's own grader.py on an attempt's records, in a process of its own.

One process an attempt: it takes 0.15 s of CPU, most of it for importing pydantic, and nothing that a
grader does to its process outlives it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from environments.claw.builtin import builtin_dispatches
from environments.claw.original import source
from environments.claw.original.inputs import dispatches, messages
from environments.claw.task import ClawTask
from rollout.errors import JudgeError
from rollout.judge import Judge, read_verdict
from rollout.processes import spawn
from rollout.store import storable
from rollout.types import Grade, JsonObject, Trace

__all__ = ["grade"]

BUILTIN = frozenset({"Bash", "Read", "Write"})
"""Tools of claw-eval's container; a grader that looks for one is told of the harness's own."""
WORKER = Path(__file__).with_name("worker.py")
SECONDS = 120.0
"""Wall-clock limit of each stretch of a grader's work between two questions to the judge."""
LONGEST = 512 * 2**20
"""Of one message from the process, bytes: a judge is sent images."""
PARTS = ("completion", "robustness", "communication", "safety")


async def grade(task: ClawTask, trace: Trace, judge: Judge | None) -> Grade:
    """The score that claw-eval's own pipeline gives (src/claw_eval/models/scoring.py).

    Raises JudgeError when the grader crashes (`detail` has the traceback), when it needs a judge that is
    not there, and when the judge gives no verdict: the graders themselves make a 0 of that.
    """
    bench = _Bench(judge)
    async with _process(task) as process:
        answer = await _converse(process, _request(task, trace, judge), bench)
    if "error" in answer:
        raise _crashed(answer["error"]["line"], answer["error"]["traceback"])
    scores = answer["scores"]
    return Grade(
        score=answer["task_score"],
        passed=answer["passed"],
        parts={name: scores[name] for name in PARTS},
        evidence=bench.evidence(answer["judge_calls"]),
    )


def _request(task: ClawTask, trace: Trace, judge: Judge | None) -> JsonObject:
    world = trace.world
    reads_builtin = source.names(Path(task.grader), Path(task.checkout), BUILTIN)
    builtin = builtin_dispatches(trace) if reads_builtin else []
    return {
        "folder": task.folder,
        "episode": task.id,
        "messages": messages(trace, task.prompt, task.documents),
        "dispatches": dispatches([*trace.tool_calls, *builtin]),
        "audit": world.get("audit", {}),
        "env_snapshot": world.get("env_snapshot"),
        "media": world.get("media", []),
        "model": judge.model if judge else "none",
    }


async def _converse(process: asyncio.subprocess.Process, request: JsonObject, bench: _Bench) -> Any:
    """Send the request, answer the grader's questions, and return what it comes to."""
    assert process.stdin is not None
    assert process.stdout is not None
    message = request
    while True:
        process.stdin.write(_line(message))
        with contextlib.suppress(ConnectionError):  # it has died: the next line tells
            await process.stdin.drain()
        try:
            line = await asyncio.wait_for(process.stdout.readline(), SECONDS)
        except TimeoutError:
            raise _crashed(f"no score after {SECONDS:.0f} s") from None
        except ValueError:
            raise _crashed(f"a message of more than {LONGEST >> 20} MiB") from None
        if not line:
            raise _crashed(f"its process ended with {_ending(await process.wait())}")
        answer = msgspec.json.decode(line)
        if "ask" not in answer:
            return answer
        message = {"reply": await bench.reply(answer["ask"])}


class _Bench:
    """The judge as one grading sees it.

    claw-eval's code reads a reply with a pattern that braces in the reasoning defeat, and then asks the
    same again. The second time it gets the verdict that we read in the same reply, in the barest form;
    only where there is none is the model asked anew.
    """

    TRIES = 4

    def __init__(self, judge: Judge | None) -> None:
        self._judge = judge
        self._replies: dict[str, list[str]] = {}
        """Digest of a question -> the model's replies to it."""
        self._plain: dict[str, str] = {}
        """Digest of a question -> the last reply's verdict, while it has not been shown."""

    async def reply(self, messages: list[JsonObject]) -> str:
        if self._judge is None:
            raise JudgeError("needs a judge (--judge openai:NAME)")
        question = hashlib.sha256(msgspec.json.encode(messages)).hexdigest()
        if plain := self._plain.pop(question, ""):
            return plain
        replies = self._replies.setdefault(question, [])
        if len(replies) == self.TRIES:
            raise JudgeError(
                f"the judge gave no reply that its grader can read: {replies[-1]!r:.200}"
            )
        replies.append(await self._judge.reply(messages, repeat=len(replies)))
        self._plain[question] = _plain(replies[-1])
        return replies[-1]

    def evidence(self, calls: list[JsonObject]) -> JsonObject:
        """What the grader made of the verdicts, and every reply as it came."""
        if not self._replies:
            return {}
        kept = [{k: v for k, v in call.items() if k != "timestamp"} for call in calls]
        return {
            "judge_calls": kept,
            "replies": [r for replies in self._replies.values() for r in replies],
        }


def _plain(reply: str) -> str:
    """The verdict in a reply such that any parser reads it; empty where there is none."""
    try:
        verdict = read_verdict(reply)
    except ValueError:
        return ""
    reasoning = verdict.reasoning.replace("{", "(").replace("}", ")")
    return msgspec.json.encode({"score": verdict.score, "reasoning": reasoning}).decode()


@asynccontextmanager
async def _process(task: ClawTask) -> AsyncIterator[asyncio.subprocess.Process]:
    """The grader's process: no keys in its environment, and gone afterwards with all its children."""
    with tempfile.TemporaryDirectory(prefix="grader-") as home:
        process = await spawn(
            *(sys.executable, "-I", "-B", "-X", "utf8", str(WORKER), task.checkout),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=task.checkout,
            env=_environment(home),
            limit=LONGEST,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _environment(home: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "TZ") if name in os.environ}
    return {**kept, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"}


def _line(message: JsonObject) -> bytes:
    """As the store would keep it, so that an attempt gets the same score when it is graded again."""
    try:
        return msgspec.json.encode(message) + b"\n"
    except (OverflowError, UnicodeEncodeError):
        return msgspec.json.encode(storable(message)) + b"\n"


def _ending(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _crashed(what: str, traceback: str = "") -> JudgeError:
    error = JudgeError(f"the grader failed: {what}")
    error.detail = traceback
    return error
