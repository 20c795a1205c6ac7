"""From folders to data: what is read, what is labelled how, and what is refused."""

import asyncio
import os
from pathlib import Path

import pytest
from support.recorded import attempt, model_call, record, tool

from reports.load import load_runs
from rollout.errors import UsageError
from rollout.store import EpisodeStore
from rollout.types import Trace


def test_frames_have_a_row_for_each_attempt_and_each_call(tmp_path: Path) -> None:
    trace = Trace(
        calls=(model_call(), model_call(n=1)), tool_calls=(tool("add"), tool("x", status=404))
    )
    folder = record(tmp_path / "a", {"t": ["passed", "failed"]}, {"t#0": trace})
    with load_runs([folder]) as runs:
        assert list(runs.episodes["passed"]) == [True, False]
        assert list(runs.episodes["harness_seconds"]) == [2.5, 2.5]
        assert list(runs.calls["episode"]) == ["t#0", "t#0"]
        assert list(runs.tool_calls["ok"]) == [True, False]


def test_the_last_try_of_an_attempt_counts(tmp_path: Path) -> None:
    folder = record(tmp_path / "a", {"t": ["infra_error:model"]})

    async def again() -> None:
        with EpisodeStore.open(folder) as store:
            await store.append(attempt("t", 0, "passed", id="t#0.1", retry=1), Trace())

    asyncio.run(again())
    with load_runs([folder]) as runs:
        (run,) = runs
        assert [episode.id for episode in run.episodes] == ["t#0.1"]
        assert [episode.id for episode in run.earlier] == ["t#0"]


def test_labels_are_as_short_as_tells_runs_apart(tmp_path: Path) -> None:
    def labels(*more: dict) -> list[str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        paths = [record(folder / str(n), {"t": ["passed"]}, **m) for n, m in enumerate(more)]
        with load_runs(paths) as runs:
            return [run.label for run in runs]

    codex = {"harness": {"name": "codex", "preset": "terse"}}
    assert labels({}, codex) == ["react · m", "codex:terse · m"]
    assert labels(
        {"model": {"model": "org/m", "p": 0.9}}, {"model": {"model": "org/m", "p": 0.5}}
    ) == ["react · m p=0.9", "react · m p=0.5"]
    assert labels(
        {"model": {"model": "hf", "path": "/checkpoints/step-100/hf", "version": "1"}},
        {"model": {"model": "hf", "path": "/checkpoints/a-long-way/step-200/hf", "version": "2"}},
    ) == [
        "react · hf path=/checkpoints/step-100/hf",
        "react · hf path=…s/a-long-way/step-200/hf",
    ]
    assert labels({"model": {"model": "a/m"}}, {"model": {"model": "b/m"}}) == [
        "react · a/m",
        "react · b/m",
    ]
    assert labels({}, {"tools": "mcp"}) == ["react · m · native", "react · m · mcp"]
    twins = labels({}, {})
    assert len(set(twins)) == 2
    assert all(label.startswith("react · m · native · ") for label in twins)


def test_a_run_under_way_with_a_torn_last_line(tmp_path: Path) -> None:
    folder = record(tmp_path / "a", {"t": ["passed", "passed"]}, attempts=3)
    with (folder / "episodes.jsonl").open("ab") as file:
        file.write(b'{"id": "t#2", "task_')
    with load_runs([folder]) as runs:
        assert len(runs.episodes) == 2
        assert not runs.base.complete


def test_nothing_is_written_beside_a_run(tmp_path: Path) -> None:
    folder = record(tmp_path / "a", {"t": ["passed"]})
    before = sorted(path.name for path in folder.iterdir())
    folder.chmod(0o555)
    try:
        with load_runs([folder]) as runs:
            assert len(runs.calls) == 0
    finally:
        folder.chmod(0o755)
    assert sorted(os.listdir(folder)) == before


def test_runs_are_found_by_label_folder_and_name(tmp_path: Path) -> None:
    paths = [record(tmp_path / n, {"t": ["passed"]}, model={"model": n}) for n in ("a", "b")]
    for name in ("react · b", "b", str(tmp_path / "b")):
        with load_runs(paths, base=name) as runs:
            assert runs.base.folder.name == "b"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: load_runs([]), "name at least one run"),
        (lambda a: load_runs([a / "nope"]), "no such folder; name the folder of a run"),
        (lambda a: load_runs([a.parent]), "holds no run: manifest.json is missing"),
        (lambda a: load_runs([a, a]), "is named twice"),
        (lambda a: load_runs([a], base="zzz"), "unknown run 'zzz'"),
        (lambda a: load_runs([a], trained=["m"]), "--trained m: say MODEL=harness,harness"),
        (lambda a: load_runs([a], trained=["x=react"]), "unknown --trained model 'x'"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, make, message: str) -> None:
    folder = record(tmp_path / "a", {"t": ["passed"]})
    with pytest.raises(UsageError, match=message) as error:
        make(folder)
    assert "\n" not in str(error.value)
