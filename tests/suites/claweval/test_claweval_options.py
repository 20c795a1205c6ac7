"""ClawEval's own options, on a small checkout: what runs, what is skipped, what the reader is told."""

import argparse
import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.tiny_checkout import write_checkout

from harness_wrappers.codex import Codex
from harness_wrappers.react import React
from rollout.errors import UsageError
from rollout.harness import Harness
from rollout.manifest import Manifest
from rollout.sandboxes.bubblewrap import Bubblewrap
from rollout.sandboxes.local import Local
from rollout.store import EpisodeStore
from suites.claweval import ClawEval
from suites.command.options import parse
from suites.main import main


@pytest.fixture
def checkout(tmp_path):
    return write_checkout(tmp_path / "checkout")


def chosen(checkout: Path, *options: str) -> ClawEval:
    suite = ClawEval()
    parse(suite, ["--data", str(checkout), *options])
    return suite


def run(checkout: Path, out: Path, *options: str) -> dict:
    with pytest.raises(SystemExit) as ended:
        main(ClawEval(), ["--data", str(checkout), "--out", str(out), "--attempts", "2", *options])
    assert ended.value.code == 0
    return json.loads((out / "summary.json").read_text())


def test_splits(checkout):
    def ids(*options: str) -> list[str]:
        return [task.id for task in chosen(checkout, *options).tasks(checkout)]

    assert len(ids()) == 5
    assert ids("--split", "multi_turn") == ["C01zh_talk"]
    assert ids("--split", "multimodal") == ["M001_clip"]
    assert len(ids("--split", "all")) == 7
    built_in = ClawEval()
    parse(built_in, ["--split", "multi_turn"])
    with pytest.raises(UsageError, match="no such task in the built-in tasks; they have: general"):
        built_in.tasks(None)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--services", "original"], "--services original needs --data with a checkout"),
        (["--error-rate", "2"], "must be from 0 to 1"),
        (["--web-cache", "/nowhere"], "--web-cache /nowhere: no such folder"),
        (["--fidelity", "better"], "invalid choice: 'better'"),
        (["--fidelity", "patched"], "--fidelity: needs --data"),
        (["--user-model", "reference"], "--user-model: needs --data"),
        (["--web-cache", "."], "--web-cache: needs --data"),
    ],
)
def test_wrong_options_are_one_line(options, line):
    with pytest.raises(UsageError, match=line):
        parse(ClawEval(), options)


def test_injected_errors_are_told_with_the_built_in_tasks_too():
    suite = ClawEval()
    parse(suite, ["--error-rate", "0.2"])
    assert suite.notes() == ["20% of the tool calls were made to fail or to be slow"]


def test_a_folder_of_tasks_alone_has_no_servers(checkout, tmp_path):
    with pytest.raises(UsageError, match="has no mock_services"):
        parse(ClawEval(), ["--services", "original", "--data", str(tmp_path)])
    parse(ClawEval(), ["--services", "original", "--data", str(checkout / "tasks")])


class Mute(Harness):
    """Can neither go on with a conversation nor run a command."""

    dialect = "chat"
    surfaces = ("native",)


@pytest.mark.parametrize(
    ("task", "harness", "surface", "sandboxes", "reason"),
    [
        ("T901_mail", Mute, "native", Local, ""),
        ("C01zh_talk", Mute, "native", Local, "needs a harness that goes on"),
        ("C01zh_talk", React, "native", Local, ""),
        ("T905_files", React, "native", Bubblewrap, "needs a shell, which React has not"),
        ("T905_files", React, "skill", Bubblewrap, ""),
        ("T905_files", Codex, "mcp", Local, "needs files in /workspace"),
    ],
)
def test_what_a_setup_can_not_do(checkout, task, harness, surface, sandboxes, reason):
    suite = chosen(checkout, "--split", "all", "--user-model", "reference")
    found = {item.id: item for item in suite.tasks(checkout)}
    setup = SimpleNamespace(harness=harness(), surface=surface, sandboxes=sandboxes())
    unfit = suite.unfit(found[task], setup)
    assert unfit.startswith(reason) if reason else unfit == ""


def test_original_servers_have_the_real_clock(checkout):
    suite = chosen(checkout, "--services", "original")
    setup = SimpleNamespace(harness=React(), surface="native", sandboxes=Local())
    clocked = SimpleNamespace(
        user=None,
        needs_shell=False,
        snapshot=SimpleNamespace(needs_sandbox=False),
        clock="2026-03-01T09:00:00+00:00",
        faults=(),
    )
    assert "--services fast" in suite.unfit(clocked, setup)


def test_what_was_run_is_in_the_manifest_and_under_the_tables_head(checkout, tmp_path, capsys):
    options = ("--tasks", "T901", "--model", "every-tool", "--error-rate", "0.01", "--seed", "3")
    summary = run(checkout, tmp_path / "run", *options)
    note, rate = summary["notes"]
    assert note.endswith("as-released, split general, fast services")
    assert rate == "1% of the tool calls were made to fail or to be slow"
    assert note in capsys.readouterr().out.replace("\n", " ")
    manifest = Manifest.read(tmp_path / "run")
    assert manifest.suite["fidelity"] == "as-released"
    assert manifest.suite["tasks"][:12] in note
    assert manifest.environment["error_rate"] == 0.01


@pytest.mark.parametrize("services", ["fast", "original"])
def test_both_kinds_of_service_run_a_task(checkout, tmp_path, services):
    pytest.importorskip("uvicorn")
    options = ("--tasks", "T901", "--model", "every-tool", "--services", services)
    summary = run(checkout, tmp_path / "run", *options, "--json", "--quiet")
    assert summary["outcomes"] == {"passed": 2}
    with EpisodeStore.read(tmp_path / "run") as store:
        for _, trace in store:
            assert [call.status for call in trace.tool_calls] == [200, 200]
            assert len(trace.world["audit"]["gmail"]["calls"]) == 2


def test_a_conversation_with_a_simulated_user(checkout, tmp_path):
    options = ("--split", "multi_turn", "--model", "every-tool", "--user-model", "reference")
    summary = run(checkout, tmp_path / "run", *options, "--json", "--quiet")
    assert summary["outcomes"] == {"passed": 2}
    with EpisodeStore.read(tmp_path / "run") as store:
        for episode, trace in store:
            assert episode.calls == 3
            assert trace.world["user_agent"]["rounds_used"] == 2
            sent = json.loads(trace.calls[-1].request)["messages"]
            assert [m["content"][:13] for m in sent if m["role"] == "user"] == [
                "Do it.\n\nAsk first."[:13],
                "[user_agent]\n",
                "[user_agent]\n",
            ]


def test_files_are_graded_inside_the_sandbox(checkout, tmp_path):
    if why := asyncio.run(Bubblewrap().check()):
        pytest.skip(why)
    options = ("--tasks", "T905", "--model", "every-tool", "--tools", "skill")
    summary = run(checkout, tmp_path / "run", *options, "--json", "--quiet")
    assert summary["outcomes"] == {"passed": 2}
    with EpisodeStore.read(tmp_path / "run") as store:
        for _, trace in store:
            found = trace.world["env_snapshot"]
            assert found["cmd:python /workspace/fixtures/verify.py"]["stdout"] == "verified\n"
            assert found["cmd:cat kept.txt"]["exit_code"] == 1
            assert "local_file:fixtures/truth.txt" in found


def test_arguments_are_a_group_of_their_own():
    parser = argparse.ArgumentParser()
    ClawEval().add_arguments(parser.add_argument_group("of claweval"))
    assert "--fidelity {as-released,patched}" in parser.format_help()
