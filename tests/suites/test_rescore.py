"""`rescore`: recorded attempts graded again, nothing run, nothing of the run changed."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.scripted_server import ScriptedServer, text
from support.toys import Notes, note_task

from rollout.environment import Environment
from rollout.errors import JudgeError
from rollout.judge import Judge
from rollout.suite import Suite
from rollout.types import Grade, Task, Trace
from suites.command.setup import NEEDS_JUDGE
from suites.main import main


class Judged(Notes):
    """Graded by a judge alone."""

    async def grade(self, task: Task, trace: Trace, judge: Judge | None = None) -> Grade:
        if judge is None:
            raise JudgeError("no judge")
        verdict = await judge.ask([{"role": "user", "content": f"{task.id}: {trace.answer}"}])
        return Grade(score=verdict.score, passed=verdict.score >= 0.5)


class Never(Notes):
    async def grade(self, task: Task, trace: Trace, judge: Judge | None = None) -> Grade:
        return Grade(score=0.0, passed=False, notes=("nobody passes",))


class Toy(Suite):
    name, title, attempts = "toy", "Toy: save a note", 2

    def __init__(self, environment: Environment, *tasks: Task) -> None:
        self._environment = environment
        self._tasks = tasks or (note_task("milk"), note_task("later", skip="needs a key"))

    def environment(self) -> Environment:
        return self._environment

    def tasks(self, data: Path | None) -> tuple[Task, ...]:
        return self._tasks


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A judge on a thread of its own: `main` has the test's loop to itself."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    judge = ScriptedServer(model="strict")
    judge.default = text('{"score": 1.0, "reasoning": "good"}')
    asyncio.run_coroutine_threadsafe(judge.__aenter__(), loop).result(10)
    yield judge
    asyncio.run_coroutine_threadsafe(judge.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def call(suite: Suite, *argv: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(suite, [str(argument) for argument in argv])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def run(suite: Suite, out: Path, *argv: object, code: int = 0) -> Path:
    assert call(suite, "--out", out, "--sandbox", "local", "--quiet", *argv) == code
    return out


def rescored(out: Path) -> list[list[dict[str, Any]]]:
    return [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(out.glob("rescored-*.jsonl"))
    ]


def test_a_mended_grader_changes_the_figures_and_not_the_run(tmp_path, capsys) -> None:
    out = run(Toy(Notes()), tmp_path / "run")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    capsys.readouterr()
    assert call(Toy(Never()), "rescore", out) == 0
    shown = capsys.readouterr()
    assert "milk#0 passed 1.00 -> failed 0.00  nobody passes" in shown.err
    assert "2 attempts graded again: 2 other outcomes, 2 other scores" in shown.err
    assert "0.0%" in shown.out
    assert "graded again, judge none" in shown.out
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.name in before} == before
    [[header, *episodes]] = rescored(out)
    assert header["suite"]["name"] == "toy"
    assert [(e["task_id"], e["outcome"]) for e in episodes] == [
        *[("later", "skipped")] * 2,
        *[("milk", "failed")] * 2,
    ]


def test_a_judge_can_be_had_later(tmp_path, capsys, server) -> None:
    out = run(Toy(Judged()), tmp_path / "run", code=1)
    judge = ("--judge", "openai:strict", "--judge-base-url", server.url)
    assert call(Toy(Judged()), "rescore", out, *judge) == 0
    assert "milk#1 judge_error -> passed 1.00" in capsys.readouterr().err
    assert (out / "judge_cache.jsonl").exists()
    assert len(server.requests) in (1, 2)  # both attempts say the same: who is second may find it


def test_the_runs_own_judge_needs_no_server_for_what_it_said(tmp_path, capsys, server) -> None:
    judge = ("--judge", "openai:strict", "--judge-base-url", server.url)
    out = run(Toy(Judged()), tmp_path / "run", *judge)
    server.key = "changed"
    asked = len(server.requests)
    assert call(Toy(Judged()), "rescore", out) == 0
    assert "0 other outcomes, 0 other scores" in capsys.readouterr().err
    assert len(server.requests) == asked
    assert rescored(out)[0][0]["judge"]["spec"] == "openai:strict"
    assert call(Toy(Judged()), "rescore", out, *judge) == 2


def test_the_runs_own_judge_may_have_moved(tmp_path, server) -> None:
    judge = ("--judge", "openai:strict", "--judge-base-url", server.url)
    out = run(Toy(Judged()), tmp_path / "run", *judge)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["judge"]["base_url"] = "http://127.0.0.1:9/v1"
    (out / "manifest.json").write_text(json.dumps(manifest))
    asked = len(server.requests)
    moved = ("--judge-base-url", server.url, "--judge-cache", tmp_path / "empty")
    assert call(Toy(Judged()), "rescore", out, *moved) == 0
    assert len(server.requests) > asked
    assert {episode["outcome"] for episode in rescored(out)[0][1:]} == {"passed", "skipped"}


def test_what_the_judge_cost_stands_under_the_table(tmp_path, capsys, server) -> None:
    judge = ("--judge", "openai:strict", "--judge-base-url", server.url, "--concurrency", 1)
    out = run(Toy(Judged()), tmp_path / "run", *judge)
    told = "judge strict: 1 call, 12 tokens, 1 kept from before"
    assert told in capsys.readouterr().out
    assert json.loads((out / "summary.json").read_text())["judge"] == {
        "model": "strict",
        "calls": 1,
        "cached": 1,
        "prompt_tokens": 10,
        "completion_tokens": 2,
    }


def test_runs_may_share_a_cache(tmp_path, server) -> None:
    judge = ("--judge", "openai:strict", "--judge-base-url", server.url)
    cache = ("--judge-cache", tmp_path / "cache")
    run(Toy(Judged()), tmp_path / "a", *judge, *cache, "--concurrency", 1)
    asked = len(server.requests)
    run(Toy(Judged()), tmp_path / "b", *judge, *cache)
    assert len(server.requests) == asked


def test_a_task_that_needs_a_judge_is_skipped_without_one(tmp_path, capsys) -> None:
    run(Toy(Judged(), note_task("milk", judged=True)), tmp_path / "run")
    assert f"skipped 1 task: {NEEDS_JUDGE}" in capsys.readouterr().out


def test_other_tasks_are_named(tmp_path, capsys) -> None:
    tasks = (note_task("milk", fingerprint="a"), note_task("bread"))
    out = run(Toy(Notes(), *tasks), tmp_path / "run")
    assert call(Toy(Notes(), note_task("milk", fingerprint="b")), "rescore", out) == 0
    shown = capsys.readouterr().err
    assert "1 tasks are not as they were in the run: milk" in shown
    assert "left as they were, for there is no such task: bread" in shown


@pytest.mark.parametrize(
    ("argv", "says"), [(("nowhere",), "holds no run"), ((), "required"), (("x", "--no"), "no run")]
)
def test_bad_usage_is_one_line(tmp_path, capsys, monkeypatch, argv, says) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(Toy(Notes()), "rescore", *argv) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error


def test_a_run_of_another_suite_is_not_graded(tmp_path, capsys) -> None:
    class Other(Toy):
        name, title = "other", "Another suite"

    out = run(Toy(Notes()), tmp_path / "run")
    assert call(Other(Notes()), "rescore", out) == 2
    assert f"is a run of toy: python -m suites.toy rescore {out}" in capsys.readouterr().err
    assert not list(out.glob("rescored-*"))
