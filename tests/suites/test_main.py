"""The shared command line: what it prints, what it writes, how it ends."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.toys import Notes, note_task

from rollout.environment import Environment
from rollout.manifest import Manifest
from rollout.store import EpisodeStore
from rollout.suite import Suite
from rollout.types import Grade, Outcome, Task
from suites.__main__ import main as list_suites
from suites.command import inspect_log
from suites.main import main

ROOT = Path(__file__).parent.parent.parent


class Toy(Suite):
    name = "toy"
    title = "Toy: save a note"

    def environment(self) -> Environment:
        return Notes()

    def tasks(self, data: Path | None) -> list[Task]:
        skipped = note_task("later", skip="needs a key", category="other")
        return [*(note_task(name, category="notes") for name in ("milk", "bread")), skipped]


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(Toy(), [*argv, "--sandbox", "local"])
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_a_run_ends_with_a_table_and_everything_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert run("--out", str(out)) == 0
    text = capsys.readouterr()
    assert "pass^3" in text.out
    assert "reference policy (no LLM)" in text.out
    assert "skipped 1 task: needs a key" in text.out
    assert "milk#0 passed 1.00" in text.err
    assert {path.name for path in out.iterdir()} >= {
        "manifest.json",
        "episodes.jsonl",
        "traces.zst",
        "summary.json",
        "inspect.eval",
    }
    manifest = Manifest.read(out)
    assert manifest.harness["name"] == "react"
    assert (manifest.harness["preset"], manifest.harness["options"]) == ("default", {})
    assert set(manifest.first_sent) == {"milk", "bread"}


def test_json_is_all_that_stdout_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--out", str(tmp_path / "run"), "--json", "--quiet", "--tasks", "milk") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["suite"] == "toy"
    assert result["harness"] == "react"
    assert result["metrics"]["pass^3"]["value"] == 1.0
    assert set(result["metrics"]["pass^3"]) == {"value", "low", "high", "n"}
    assert set(result["metrics"]) == {"pass^3", "pass@3", "pass@1"}
    assert result["outcomes"] == {"passed": 3}
    assert [task["id"] for task in result["tasks"]] == ["milk"]
    assert result == json.loads((tmp_path / "run" / "summary.json").read_text())


def test_a_task_that_the_policy_has_no_solution_for_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toy, "tasks", lambda self, data: [note_task(reference=None)])
    assert run("--out", str(tmp_path / "run")) == 0
    assert "skipped 1 task: has no reference solution" in capsys.readouterr().out


def test_a_harness_that_no_task_is_for_is_told_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--harness", "molmoweb", "--out", str(tmp_path / "run")) == 2
    assert "error: --harness: molmoweb needs a task with browser_*" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_run_that_could_grade_nothing_does_not_end_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Toy, "environment", lambda self: Notes("judge"))
    assert run("--out", str(tmp_path / "run"), "--tasks", "milk") == 1
    assert "0/3" in capsys.readouterr().out


def test_the_model_that_always_errs_fails_every_attempt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = "noisy-reference:p=0"
    assert run("--model", model, "--out", str(tmp_path / "run"), "--json", "--quiet") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["metrics"]["pass@1"]["value"] == 0.0
    assert result["outcomes"] == {"failed": 6, "skipped": 3}


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--harness", "codec"], "unknown harness 'codec': did you mean 'codex'?"),
        (["--model", "referense"], "unknown model 'referense': did you mean 'reference'?"),
        (["--model", "noisy-reference:p=2"], "p"),
        (["--harness-program", "/nowhere/codex", "--harness", "codex"], "no such executable"),
        (["--harness-program", "/bin/sh"], "harness react needs no program"),
        (["--tools", "telepathy"], "--tools"),
        (["--harness", "codex", "--tools", "native"], "takes --tools mcp, skill"),
        (["--attempts", "0"], "--attempts"),
        (["--concurrency", "many"], "--concurrency"),
        (["--tasks", "cheese"], "no task 'cheese'"),
        (["--tasks", "MIL"], "no task 'MIL'; did you mean milk?"),
        (["--tasks", "notes"], "no task 'notes'; did you mean tag:notes?"),
        (["--tasks", ","], "name at least one task"),
        (["--tasks", "tag:cheese"], "no task has that tag"),
        (["--temperature", "-1"], "--temperature: must be at least 0, not -1"),
        (["--top-p", "7"], "--top-p: must be from 0 to 1, not 7"),
        (["--timeout", "inf"], "--timeout: must be greater than 0 and finite"),
        (["--model", "noisy-reference"], "--model noisy-reference: p must be"),
        (["--sandbox", "balloon"], "unknown sandbox 'balloon'"),
        (["--resume"], "--resume needs the run's folder"),
        (["--frobnicate"], "--frobnicate"),
        (["--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1"], "127.0.0.1:9"),
        (["--base-url", "http://127.0.0.1:9/v1"], "--model reference has no server"),
        (["--judge-base-url", "http://127.0.0.1:9/v1"], "--judge-base-url: needs --judge SPEC"),
        (["--judge-cache", "kept"], "--judge-cache: needs --judge SPEC"),
        (["--judge-temperature", "default"], "--judge-temperature: needs --judge SPEC"),
        (["--judge", "noisy-reference:p=1"], "plays prepared solutions, judges nothing"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_mistake_costs_one_line_and_exit_code_2(
    argv: list[str],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(Toy(), argv)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    [line] = captured.err.strip().splitlines()
    assert line.startswith("error: ")
    assert says in line
    assert not list(tmp_path.iterdir())


def _broken(**methods: object) -> Suite:
    return type("Broken", (Toy,), methods)()


@pytest.mark.parametrize(
    ("suite", "says"),
    [
        (Toy, "Toy is not an instance of Suite; write Toy()"),
        (_broken(tasks=lambda self: ()), "Broken.tasks() must take (self, data)"),
        (_broken(tasks=lambda self, data: 1 / 0), "tasks(): ZeroDivisionError: division by zero ("),
        (_broken(tasks=lambda self, data: None), "must return a list, not NoneType"),
        (
            _broken(environment=lambda self: Environment()),
            "environment(): TypeError: Can't instantiate",
        ),
        (_broken(environment=lambda self: Notes), "Notes is not an instance of Environment"),
    ],
)
def test_a_mistake_in_a_suite_costs_one_line(
    suite: Suite, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(suite, ["--out", str(tmp_path / "run")])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("error: ")
    assert says in line


def test_resume_runs_nothing_twice_and_refuses_other_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    assert run("--out", out) == 0
    lines = (tmp_path / "run" / "episodes.jsonl").read_text()
    assert run("--out", out) == 2
    assert "holds a run already" in capsys.readouterr().err
    assert run("--out", out, "--resume", "--seed", "5") == 2
    assert "seed: 0 -> 5" in capsys.readouterr().err
    assert run("--out", out, "--resume", "--tasks", "milk") == 2
    assert "resumed: tasks left out now: bread, later" in capsys.readouterr().err.replace("\n", " ")
    assert run("--out", out, "--resume") == 0
    assert "9 of 9 attempts done already" in capsys.readouterr().err
    assert run("--out", out, "--resume") == 0
    assert (tmp_path / "run" / "episodes.jsonl").read_text() == lines
    assert "pass^3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ("open", "1 attempt ended in infra_error; to run again: python -m suites.toy "),
        ("grade", "1 attempt ended in judge_error; to grade again: python -m suites.toy rescore "),
    ],
)
def test_what_stays_without_a_grade_can_have_one_later(
    stage: str,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Toy):
        def environment(self) -> Environment:
            return Notes(stage)

    out = str(tmp_path / "run [x]")
    argv = ["--tasks", "milk", "--attempts", "1", "--sandbox", "local", "--out", out]
    with pytest.raises(SystemExit) as ended:
        main(Broken(), argv)
    assert ended.value.code == 1
    text = capsys.readouterr()
    assert "toy: 1 task x 1 attempt, react" in text.err
    assert f"run: {out}\n" in text.err
    assert says in text.err
    assert "pass@1: the attempt passes (95 % interval over tasks)" in text.out
    assert "pass^1" not in text.out
    assert "eadline" not in text.err + caplog.text


def test_a_run_without_inspect_names_no_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_log, "find_spec", lambda name: None)
    assert run("--tasks", "milk", "--out", str(tmp_path / "run")) == 0
    text = capsys.readouterr()
    assert "pip install inspect-ai" in text.err
    assert "inspect.eval" not in text.out


def test_a_task_named_twice_is_run_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--tasks", "milk,bread,milk", "--list") == 0
    assert "2 tasks" in capsys.readouterr().out


def test_a_run_killed_before_its_first_episode_resumes(tmp_path: Path) -> None:
    out = tmp_path / "run"
    EpisodeStore.create(out).close()
    assert run("--out", str(out), "--resume", "--quiet") == 0
    (out / "manifest.json").unlink()
    assert run("--out", str(out), "--resume", "--quiet") == 2


def test_list_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--list") == 0
    listing = capsys.readouterr().out
    assert "milk" in listing
    assert "skipped: needs a key" in listing
    assert run("--help") == 0
    assert "noisy-reference:p=0.8" in capsys.readouterr().out


SLOW_RUN = [
    *(sys.executable, "-m", "suites.claweval", "--tasks", "12", "--attempts", "4"),
    *("--sandbox", "local", "--concurrency", "4"),
]


def start(out: Path, *more: str) -> subprocess.Popen[str]:
    def heeding() -> None:
        # Whoever runs the tests may ignore these, as nohup does: a run would then ignore them too.
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [*SLOW_RUN, "--out", str(out), *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        preexec_fn=heeding,
    )


def stored(out: Path) -> int:
    path = out / "episodes.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for(out: Path, episodes: int, process: subprocess.Popen[str]) -> None:
    while stored(out) < episodes and process.poll() is None:
        time.sleep(0.005)


def test_ctrl_c_stops_cleanly_and_says_how_to_resume(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(out)
    wait_for(out, 3, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert f"--out {out} --resume" in err
    assert "Traceback" not in err
    resumed = start(out, "--resume", "--quiet")
    resumed.communicate(timeout=120)
    assert resumed.returncode == 0


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Twenty times in one run: killed when a random number of further episodes is stored."""
    chance = random.Random(9)
    out = tmp_path / "run"
    before: dict[str, Any] = {}
    for kill in range(20):
        process = start(out, *(["--resume"] if kill else []))
        wait_for(out, stored(out) + chance.randrange(1, 3), process)
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        process.communicate()
        now = {
            line["id"]: line
            for line in map(msgspec.json.decode, _whole_lines(out / "episodes.jsonl"))
        }
        assert before.items() <= now.items()
        before = now
    last = start(out, "--resume", "--json", "--quiet")
    text, err = last.communicate(timeout=120)
    assert last.returncode == 0, err
    with EpisodeStore.read(out) as store:
        episodes = store.episodes()
        assert all(store.trace(episode).calls for episode in episodes)
    assert max(Counter((e.task_id, e.attempt) for e in episodes).values()) == 1
    assert len(episodes) == 48
    assert {episode.outcome for episode in episodes} == {Outcome.PASSED}
    assert before.keys() <= {episode.id for episode in episodes}
    assert json.loads(text)["outcomes"] == {"passed": 48}


def _whole_lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


ODD = "\x1b[31m[/red]\x07 two\nlines"


def test_what_tasks_and_agents_write_reaches_no_terminal_raw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as an escape sequence nor as markup: in listings, progress, reasons and tables."""
    tasks = [
        note_task(name, category=f"{name}{ODD}", skip=ODD * bool(name == "c")) for name in "abc"
    ]
    grade = Notes.grade

    async def graded(*arguments: Any) -> Grade:
        return msgspec.structs.replace(await grade(*arguments), notes=(ODD,))

    monkeypatch.setattr(Toy, "tasks", lambda *_: tasks)
    monkeypatch.setattr(Notes, "grade", graded)
    assert run("--list") == 0
    assert run("--out", str(tmp_path / f"[/b]{ODD[:4]}"), "--model", "noisy-reference:p=0") == 0
    text = capsys.readouterr()
    assert "\x1b" not in text.out + text.err
    assert "\x07" not in text.out + text.err
    assert "\ufffd[31m[/red]\ufffd two lines" in text.err


def test_a_hangup_stops_cleanly(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(out)
    wait_for(out, 2, process)
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err


def test_the_suites_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    list_suites()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines] == [
        "suites.claweval",
        "suites.office_drills",
        "suites.online_mind2web",
        "suites.webvoyager",
    ]
    assert "ClawEval: everyday work" in lines[0]
