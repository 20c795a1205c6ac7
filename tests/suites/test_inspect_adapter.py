"""A suite under the real `inspect eval`, against the same suite under its own command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SAME = {"harness": "react", "model": "noisy-reference:p=0.5", "tasks": 3, "seed": 5}


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")},
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def inspect_eval(folder: Path, **options: object) -> None:
    inspect = str(Path(sys.executable).with_name("inspect"))
    task = "suites/inspect_adapter.py@anyharness"
    given = [part for name, value in options.items() for part in ("-T", f"{name}={value}")]
    run(folder, inspect, "eval", task, *given, "--log-dir", str(folder), "--display", "none")


@pytest.mark.slow
async def test_inspect_eval_gives_what_the_suite_gives(tmp_path):
    log_module = pytest.importorskip("inspect_ai.log", reason="needs the extra 'inspect'")
    inspect_eval(tmp_path, suite="claweval", **SAME)
    (path,) = tmp_path.glob("*.eval")
    log = await log_module.read_eval_log_async(path)
    assert log.status == "success"

    options = [f"--{name}={value}" for name, value in SAME.items()]
    out = ("--out", str(tmp_path / "run"), "--json", "--quiet")
    ours = json.loads(run(tmp_path, sys.executable, "-m", "suites.claweval", *options, *out))
    assert {
        (sample.id, sample.epoch): sample.scores["outcome"].value for sample in log.samples
    } == {
        (task["id"], number): {"passed": int(a["outcome"] == "passed"), "reward": a["score"]}
        for task in ours["tasks"]
        for number, a in enumerate(task["attempts"], 1)
    }
    theirs = {(s.name, s.reducer): s.metrics["mean"].value for s in log.results.scores}
    for name, reducer in (("pass@1", "mean"), ("pass@3", "pass_at_3"), ("pass^3", "pass_k_3")):
        assert theirs["passed", reducer] == pytest.approx(ours["metrics"][name]["value"])
    assert log.samples[0].messages[-1].role == "assistant"


@pytest.mark.slow
async def test_a_setup_that_can_not_work_fails_the_eval(tmp_path):
    log_module = pytest.importorskip("inspect_ai.log", reason="needs the extra 'inspect'")
    inspect_eval(tmp_path, suite="claweval", harness="codx", tasks=1)
    (path,) = tmp_path.glob("*.eval")
    log = await log_module.read_eval_log_async(path)
    assert log.status == "error"
    assert "did you mean 'codex'?" in log.error.message
