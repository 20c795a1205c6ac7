"""`python -m judges calibrate`: a judge that is wrong where it is told to be, and what is said of it."""

import asyncio
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.scripted_server import Fail, ScriptedServer, Step, text
from support.toy_suite import TASKS, ToySuite

from judges.__main__ import main
from rollout.manifest import Manifest
from rollout.store import EpisodeStore
from rollout.types import Episode, Grade, Outcome, ToolCall, Trace

FINGERPRINTS = {task.id: task.fingerprint for task in ToySuite().tasks(None)}


class Opinionated(ScriptedServer):
    """Says that a note is saved when it sees it, but for the tasks that it is wrong or mute about."""

    wrong: tuple[str, ...] = ()
    mute: tuple[str, ...] = ()

    async def _play(self, request: web.Request, step: Step) -> web.StreamResponse:
        asked = json.dumps(self.requests[-1].body)
        name = re.findall(r"Save a note: (\w+)", asked)[-1]
        right = ("notes_add" in asked) == (name not in self.wrong)
        verdict = f'{{"score": {right:d}, "reasoning": "I looked for {name}"}}'
        said = text("Well." if name in self.mute else verdict)
        return await super()._play(request, step if isinstance(step, Fail) else said)


@pytest.fixture
def server() -> Iterator[Opinionated]:
    """On a thread of its own: `main` has the test's loop to itself."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    judge = Opinionated(model="strict")
    asyncio.run_coroutine_threadsafe(judge.__aenter__(), loop).result(10)
    yield judge
    asyncio.run_coroutine_threadsafe(judge.stop(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def attempt(task: str, n: int, saved: bool, **more: Any) -> tuple[Episode, Trace]:
    call = ToolCall(index=0, name="notes_add", arguments={}, status=200, reply={}, surface="native")
    fields: dict[str, Any] = {
        "outcome": Outcome.PASSED if saved else Outcome.FAILED,
        "grade": Grade(score=float(saved), passed=saved),
    }
    episode = Episode(id=f"{task}#{n}", task_id=task, attempt=n, **(fields | more))
    return episode, Trace(tool_calls=(call,) if saved else (), answer="Saved.")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two attempts at each of four tasks, the second failed; and what is no truth to measure by."""
    folder = tmp_path / "run"
    attempts = [attempt(task, n, saved=not n) for task in TASKS for n in (0, 1)]
    attempts += [
        attempt("taste", 0, saved=True),
        attempt("milk", 2, saved=False, outcome=Outcome.INFRA_ERROR, grade=None),
        attempt("gone", 0, saved=True),
    ]

    async def write() -> None:
        with EpisodeStore.create(folder) as store:
            for episode, trace in attempts:
                await store.append(episode, trace)

    asyncio.run(write())
    manifest(folder)
    return folder


def manifest(folder: Path, **more: Any) -> None:
    Manifest(
        suite={"name": "support.toy_suite", "data": "built-in"},
        tasks=FINGERPRINTS,
        harness={},
        tools="native",
        model={},
        seed=0,
        attempts=2,
        **more,
    ).write(folder)


def calibrate(*argv: object, code: int = 0) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["calibrate", "--suite", "support.toy_suite", *map(str, argv)])
    assert ended.value.code == code


def judged_by(server: ScriptedServer) -> tuple[str, ...]:
    return "--judge", "openai:strict", "--judge-base-url", server.url


def told(capsys: pytest.CaptureFixture[str], *argv: object, code: int = 0) -> dict[str, Any]:
    calibrate(*argv, "--json", "--quiet", code=code)
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_the_judge_is_wrong_exactly_where_it_was_told_to_be(run, server, capsys) -> None:
    server.wrong = ("pens",)
    found = told(capsys, run, *judged_by(server), "--concurrency", 1)
    agreement = found["agreement"]
    cells = ("both_success", "judge_only", "truth_only", "both_failure")
    assert [agreement[cell] for cell in cells] == [3, 1, 1, 3]
    assert agreement["agreement"]["value"] == 0.75
    assert agreement["kappa"]["value"] == 0.5
    assert agreement["bias"]["value"] == 0
    assert agreement["false_success"]["value"] == agreement["false_failure"]["value"] == 0.25
    assert found["differing"] == ["pens#0", "pens#1"]
    assert found["left_out"] == {
        "its task is no longer there": 1,
        "ended in infra_error": 1,
        "was itself graded by a judge": 1,
    }
    assert found["spent"]["calls"] == 8
    assert (found["spent"]["prompt_tokens"], found["spent"]["completion_tokens"]) == (80, 16)
    assert (found["judge"]["model"], found["judge"]["temperature"]) == ("strict", 0.0)
    assert (found["protocol"]["name"], found["protocol"]["prompts"]) == ("rubric", "own")
    assert found["protocol"]["k"] == 2  # as the suite has it


def test_a_calibration_is_repeated_for_nothing(run, server, capsys) -> None:
    first = told(capsys, run, *judged_by(server), "--concurrency", 1)
    asked = len(server.requests)
    server.default = Fail(500)
    manifest(run, judge={"spec": "openai:strict", "base_url": server.url, "temperature": 0.0})
    again = told(capsys, run)
    assert len(server.requests) == asked == 8
    assert again["agreement"] == first["agreement"]
    assert (again["spent"]["calls"], again["spent"]["cached"]) == (0, 8)


class Interrupting(Opinionated):
    """Has the third question interrupted."""

    interrupted = False

    async def _play(self, request: web.Request, step: Step) -> web.StreamResponse:
        if len(self.requests) == 3 and not self.interrupted:
            self.interrupted = True
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        return await super()._play(request, step)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Whatever started the tests may have SIGINT ignored, as shells do with what runs beside them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_calibration_goes_on_where_it_was(run, server, capsys) -> None:
    server.__class__ = Interrupting
    calibrate(run, *judged_by(server), "--concurrency", 1, code=130)
    assert "goes on from there" in " ".join(capsys.readouterr().err.split())
    found = told(capsys, run, *judged_by(server), "--concurrency", 1)
    assert (found["spent"]["calls"], found["spent"]["cached"]) == (6, 2)


def test_a_judge_without_a_verdict_is_an_error_and_no_opinion(run, server, capsys) -> None:
    server.mute = ("soap",)
    found = told(capsys, run, *judged_by(server), "--concurrency", 1)
    assert (found["agreement"]["judged"], found["agreement"]["errors"]) == (6, 2)
    assert found["agreement"]["agreement"]["value"] == 1
    failed = [case for case in found["cases"] if case["judge"] is None]
    assert [case["episode"] for case in failed] == ["soap#0", "soap#1"]
    assert "gave no verdict" in failed[0]["reason"]


def test_a_judge_that_refuses_everything_measures_nothing(run, server, capsys) -> None:
    server.default = Fail(400, "no pictures, please")
    found = told(capsys, run, *judged_by(server), code=1)
    assert (found["agreement"]["judged"], found["agreement"]["errors"]) == (0, 8)
    assert found["agreement"]["kappa"] is None
    assert "refused: no pictures, please" in found["cases"][0]["reason"]


def test_people_are_told_the_figures_and_every_difference(run, server, capsys) -> None:
    server.wrong, server.mute = ("pens",), ("soap",)
    calibrate(run, *judged_by(server), "--concurrency", 1)
    out, err = capsys.readouterr()
    assert "openai:strict against the verifiers of" in out
    assert "6 attempts at 4 tasks" in out
    assert "prompts: own (scores under other prompts are not comparable)" in out
    assert re.search(r"kappa +0\.33", out)
    assert "no verdict (judge_error), in none of the figures: 2" in out
    assert "  pens#0 is a success, the judge says failure: 0: I looked for pens" in out
    assert "left out, was itself graded by a judge: 1" in out
    assert "[8/8] soap#1 no verdict" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "was run without a judge: name one with --judge openai:NAME"),
        (("--protocol", "webjuge"), "unknown protocol 'webjuge': did you mean 'webjudge'"),
        (("--protocol", "webjudge", "--judge-prompts", "nowhere"), "--judge-prompts nowhere: src/"),
        (("--concurrency", "0"), "--concurrency: must be greater than 0"),
        (("--judge-temperature", "-1"), "argument --judge-temperature"),
        (("--judge", "openai:x", "--judge-base-url", "http://127.0.0.1:9/v1"), "no model server"),
    ],
)
def test_wrong_usage_is_one_line(run, capsys, arguments: tuple[str, ...], message: str) -> None:
    calibrate(run, *arguments, code=2)
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_run_without_truth_or_no_run_is_said(run, tmp_path, capsys) -> None:
    calibrate(tmp_path, "--judge", "openai:x", code=2)
    assert "holds no run" in capsys.readouterr().err
    with EpisodeStore.create(tmp_path / "empty"):
        manifest(tmp_path / "empty")
    calibrate(tmp_path / "empty", "--judge", "openai:x", code=2)
    assert "no attempt was graded by a verifier (it is empty)" in capsys.readouterr().err
