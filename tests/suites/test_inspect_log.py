"""The Inspect log of a run with every kind of outcome, read back by Inspect itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rollout.manifest import Manifest
from rollout.store import EpisodeStore
from rollout.types import Call, Episode, Grade, Outcome, Task, Timing, ToolCall, Trace, Usage
from suites.command import inspect_log
from suites.command.inspect_log import write_log
from suites.command.result import Result, summarise_run

P, F, E, B, S = (
    Outcome.PASSED,
    Outcome.FAILED,
    Outcome.INFRA_ERROR,
    Outcome.BLOCKED,
    Outcome.SKIPPED,
)
OUTCOMES = {
    "a": (P, P, P),
    "b": (P, F, P),
    "c": (F, F, F),
    "d": (P, E, P),
    "e": (B, F, F),
    "f": (S,),
}
TASKS = [Task(id=name, prompt=f"Do {name}.", category="mail") for name in OUTCOMES]
REQUEST = {"messages": [{"role": "user", "content": "Do it."}]}
REPLY = {"choices": [{"message": {"role": "assistant", "content": "Done."}}]}


def episode(task: str, attempt: int, outcome: Outcome, **fields) -> Episode:
    fields = {"id": f"{task}#{attempt}", "reason": "because", **fields}
    passed = outcome is P
    return Episode(
        task_id=task,
        attempt=attempt,
        outcome=outcome,
        grade=Grade(score=0.9 if passed else 0.25, passed=passed) if outcome.graded else None,
        usage=Usage(prompt=100, completion=10),
        timing=Timing(total=2.0, setup=0.5),
        started=1_700_000_000.0 + attempt,
        calls=1,
        **fields,
    )


async def run(folder: Path) -> tuple[EpisodeStore, Manifest, Result]:
    manifest = Manifest(
        suite={"name": "claweval"},
        tasks={task.id: "" for task in TASKS},
        harness={"name": "react"},
        tools="native",
        model={"model": "reference"},
        seed=0,
        attempts=3,
    )
    dispatched = ToolCall(
        index=0, name="send", arguments={"to": "ann"}, status=200, reply={}, surface="native"
    )
    call = Call(
        index=0,
        dialect="chat",
        kind="main",
        request=json.dumps(REQUEST).encode(),
        reply=json.dumps(REPLY).encode(),
    )
    trace = Trace(calls=(call,), tool_calls=(dispatched,), answer="Done.")
    store = EpisodeStore.create(folder)
    await store.append(episode("a", 0, E, id="a#0", cause="model"), Trace())
    for task, outcomes in OUTCOMES.items():
        for attempt, outcome in enumerate(outcomes):
            again = {"id": "a#0.1", "retry": 1} if (task, attempt) == ("a", 0) else {}
            cause = {"cause": "policy"} if task == "c" else {}
            await store.append(episode(task, attempt, outcome, **again, **cause), trace)
    result = summarise_run(
        suite="claweval",
        harness="react",
        model="reference policy (no LLM)",
        k=3,
        tasks=TASKS,
        episodes=list(store.latest().values()),
        paths={},
    )
    return store, manifest, result


async def test_inspect_reads_the_log_and_agrees(tmp_path):
    log_module = pytest.importorskip("inspect_ai.log", reason="needs the extra 'inspect'")
    store, manifest, result = await run(tmp_path)
    path = tmp_path / "inspect.eval"
    assert write_log(path, store, manifest, TASKS, result) == ""
    assert not list(tmp_path.glob("*partial*"))
    log = await log_module.read_eval_log_async(path)

    found = {(s.name, s.reducer): s for s in log.results.scores}
    ours = result.overall.rates
    for reducer, estimate in (
        ("mean", ours.pass_at_1),
        ("pass_at_3", ours.pass_at_k),
        ("pass_k_3", ours.pass_hat_k),
    ):
        score = found["passed", reducer]
        assert score.metrics["mean"].value == pytest.approx(estimate.value), reducer
        assert score.scored_samples == estimate.n
    assert found["reward", "mean"].metrics["mean"].value == pytest.approx(
        result.overall.score.value
    )
    assert log.results.headline.reducer == "pass_k_3"
    assert log.eval.model == "reference policy (no LLM)"

    samples = {(sample.id, sample.epoch): sample for sample in log.samples}
    assert len(samples) == len(log.samples) == 15
    first = samples["a", 1]
    assert [(m.role, m.text) for m in first.messages] == [
        ("user", "Do it."),
        ("assistant", "Done."),
    ]
    assert first.scores["outcome"].value == {"passed": 1, "reward": 0.9}
    assert first.metadata["tool_calls"] == [
        {"name": "send", "arguments": {"to": "ann"}, "status": 200}
    ]
    assert first.error_retries[0].message == "infra_error (model): because"
    assert first.error is None
    assert samples["d", 2].error.message == "infra_error: because"
    assert samples["d", 2].scores is None
    assert samples["e", 1].error.message == "blocked: because"
    assert samples["c", 1].limit.reason == "because"
    store.close()


async def test_without_inspect_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(inspect_log, "find_spec", lambda name: None)
    store, manifest, result = await run(tmp_path)
    note = write_log(tmp_path / "inspect.eval", store, manifest, TASKS, result)
    assert note.endswith("pip install inspect-ai")
    store.close()


async def test_a_log_that_can_not_be_written_does_not_spoil_the_run(tmp_path):
    pytest.importorskip("inspect_ai", reason="needs the extra 'inspect'")
    store, manifest, result = await run(tmp_path)
    note = write_log(tmp_path / "inspect.eval", store, manifest, TASKS[:1], result)
    assert note == "no Inspect log was written: KeyError: 'b'"
    store.close()


async def test_the_inspect_command_opens_it(tmp_path):
    pytest.importorskip("inspect_ai", reason="needs the extra 'inspect'")
    store, manifest, result = await run(tmp_path / "run")
    assert write_log(tmp_path / "run" / "inspect.eval", store, manifest, TASKS, result) == ""
    store.close()
    inspect = Path(sys.executable).with_name("inspect")

    def command(*arguments: str) -> str:
        done = subprocess.run(
            [inspect, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(tmp_path)},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    dumped = json.loads(command("log", "dump", str(tmp_path / "run" / "inspect.eval")))
    assert len(dumped["samples"]) == 15
    bundle = str(tmp_path / "bundle")
    command("view", "bundle", "--log-dir", str(tmp_path / "run"), "--output-dir", bundle)
    assert (tmp_path / "bundle" / "index.html").exists()
