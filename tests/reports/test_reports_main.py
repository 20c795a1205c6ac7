"""The command line, on real runs of policies of known quality."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from support.recorded import record

from reports.__main__ import main
from reports.catalogue import TABLES, Report
from reports.load import load_runs
from reports.reliability import compare
from reports.verdict import verdict


def test_the_known_difference_is_recovered(real_runs: dict[str, Path]) -> None:
    with load_runs([real_runs["good"], real_runs["poor"]]) as runs:
        good, poor = Report(runs).table("cross-harness").frame.itertuples()
        assert good.model == "noisy-reference p=1"
        assert good.pass_hat_k == good.pass_at_1 == 1
        assert poor.pass_hat_k_low <= 0.3**3 <= poor.pass_hat_k_high
        assert poor.pass_at_1_low <= 0.3 <= poor.pass_at_1_high
        assert poor.delta_pass_hat_k_high < 0
        assert compare(*runs.runs, 3).only_a >= 5
        (text,) = verdict(runs)
    assert text.startswith("In the harness react, noisy-reference p=1 is ahead: pass^3 100%")
    assert "That is settled" in text


def test_behaviour_of_the_reference_policy(real_runs: dict[str, Path]) -> None:
    with load_runs([real_runs["good"]]) as runs:
        report = Report(runs)
        found = report.table("behaviour").frame.iloc[0]
        assert (found.tool_coverage, found.step_efficiency, found.format_robustness) == (1, 1, 1)
        assert found.plan_completion == 1
        assert found.shell_share == 0
        assert report.table("behaviour").notes == ()
        assert set(report.table("tool-use").frame.kind) == {"task"}


def test_a_table_in_the_terminal_writes_nothing(
    real_runs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    main([*map(str, real_runs.values()), "--table", "cross-harness", "--base", "poor"])
    out = capsys.readouterr().out
    assert "pass^3 - base" in out
    assert "noisy-reference p=1 is ahead" in out
    assert not list(tmp_path.iterdir())


def test_the_report_is_a_page_and_files(real_runs: dict[str, Path], tmp_path: Path) -> None:
    main([*map(str, real_runs.values()), "--out", str(tmp_path / "out"), "--title", "Known runs"])
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "Known runs" in page
    assert "noisy-reference p=1 is ahead" in page
    tables = tmp_path / "out" / "tables"
    assert {path.stem for path in tables.iterdir()} == set(TABLES)
    assert len(pd.read_csv(tables / "cross-harness.csv")) == 2
    assert "| noisy-reference p=1 | react |" in (tables / "cross-harness.md").read_text("utf-8")


def test_the_list_names_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(TABLES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name at least one run's folder"),
        (["nope"], "nope: no such folder"),
        (["RUN", "--table", "cross-harnes"], "unknown table 'cross-harnes': did you mean"),
        (["RUN", "--base", "other"], "unknown run 'other'"),
        (["RUN", "--prices", "nope.yaml"], "--prices nope.yaml: No such file"),
        (["RUN", "--k", "0"], "must be greater than 0"),
        (["RUN", "--frobnicate"], "--help shows the options"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = record(tmp_path / "run", {"t": ["passed"]})
    with pytest.raises(SystemExit) as error:
        main([str(run) if each == "RUN" else each for each in arguments])
    assert error.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said
    assert said.count("\n") == 1


def test_a_table_does_not_load_plotly() -> None:
    code = "import sys, reports.__main__; assert 'plotly' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
