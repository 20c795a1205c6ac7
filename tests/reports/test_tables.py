"""The tables' figures, on runs of which all is known."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.recorded import model_call, record, tool

from reports.catalogue import TABLES, Report
from reports.cells import shown
from reports.comparability import marks
from reports.cost import Price, price_of, read_prices
from reports.load import Runs, load_runs
from reports.reliability import compare
from reports.verdict import verdict
from reports.write import markdown, write_tables
from rollout.errors import UsageError
from rollout.first_sent import FirstSent
from rollout.manifest import Manifest
from rollout.types import Trace

P, F, ERROR = "passed", "failed", "infra_error:sandbox"
CODEX = {"harness": {"name": "codex", "preset": "default"}}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Runs]:
    """react passes t1 always, t2 sometimes, t3 never and has an error; codex passes all but one."""
    a = record(tmp_path / "a", {"t1": [P, P, P], "t2": [P, F, P], "t3": [F, F, ERROR]})
    b = record(tmp_path / "b", {"t1": [P, P, P], "t2": [P, P, P], "t3": [P, F, P]}, **CODEX)
    with load_runs([a, b]) as runs:
        yield runs


def row(runs: Runs, table: str, number: int = 0) -> "pd.Series[float]":
    return Report(runs).table(table).frame.iloc[number]


def test_cross_harness_figures(pair: Runs) -> None:
    react, codex = row(pair, "cross-harness"), row(pair, "cross-harness", 1)
    assert (react.tasks, react.attempted, react.graded, react.errored, react.incomplete) == (
        3,
        9,
        8,
        1,
        1,
    )
    assert react.pass_hat_k == 0.5  # t3 has two graded attempts: left out
    assert react.pessimistic_pass_hat_k == pytest.approx(1 / 3)
    assert react.pass_at_1 == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert codex.pass_hat_k == pytest.approx(2 / 3)
    assert codex.pass_at_k == 1
    assert codex.delta_pass_hat_k == 0.5  # on t1 and t2
    assert math.isnan(react.delta_pass_hat_k)
    assert codex.pass_hat_k_low < codex.pass_hat_k < codex.pass_hat_k_high


def test_two_runs_on_the_same_tasks(pair: Runs) -> None:
    found = compare(*pair.runs, 3)
    assert (found.tasks, found.only_a, found.only_b, found.p) == (2, 0, 1, 1.0)
    assert found.hat.value == 0.5
    assert found.mean.value == pytest.approx((0 + 1 / 3 + 2 / 3) / 3)
    assert not found.settled
    assert found.comparable
    assert found.needed > 0


def test_a_clear_difference_is_settled(tmp_path: Path) -> None:
    names = [f"t{n}" for n in range(12)]
    a = record(tmp_path / "a", {name: [F, P, F] for name in names})
    b = record(tmp_path / "b", {name: [P, P, P] for name in names}, **CODEX)
    with load_runs([a, b]) as runs:
        found = compare(*runs.runs, 3)
        assert found.settled
        assert found.needed == 0
        (text,) = verdict(runs)
    assert "codex is ahead: pass^3 100%" in text
    assert "That is settled" in text


def test_the_verdict_says_when_nothing_can_be_told_apart(pair: Runs) -> None:
    (text,) = verdict(pair)
    assert text.startswith("With the model m, codex is ahead")
    assert "Can't tell them apart at n = 2" in text
    assert "more tasks of this kind would settle" in text
    assert "without a grade ended none against 1 infra_error (sandbox)" in text


def test_the_verdict_without_anything_to_compare(tmp_path: Path) -> None:
    one = record(tmp_path / "a", {"t": [P, P]})
    none = record(tmp_path / "b", {})
    with load_runs([one]) as runs:
        assert "Nothing to compare it with" in verdict(runs)[0]
    with load_runs([none]) as runs:
        assert "nothing can be said yet" in verdict(runs)[0]


def test_the_verdict_says_which_runs_have_not_ended(tmp_path: Path) -> None:
    one = record(tmp_path / "a", {"t": [P, P], "u": [P, P]})
    manifest = Manifest.read(one)
    msgspec.structs.replace(manifest, attempts=manifest.attempts + 1).write(one)
    with load_runs([one]) as runs:
        _, open_run = verdict(runs)
    assert re.search(r": 4 of \d+ attempts have ended so far\.$", open_run)


def test_curves_fall_and_rise(pair: Runs) -> None:
    frame = Report(pair).table("pass-at-k").frame
    react = frame[frame.run == "react · m"]
    assert list(react.k) == [1, 2, 3]
    assert list(react.n) == [3, 3, 2]
    assert react["hat"].iloc[1] == pytest.approx((1 + 1 / 3 + 0) / 3)


def test_outcomes_by_cause(pair: Runs) -> None:
    frame = Report(pair).table("outcomes").frame
    error = frame[frame.outcome == "infra_error"].iloc[0]
    assert (error.cause, error.attempts, error.example) == ("sandbox", 1, "t3#2")
    assert frame[frame.run == "react · m"].share.sum() == pytest.approx(1)


def test_tasks_on_which_runs_differ_come_first(pair: Runs) -> None:
    assert list(Report(pair).table("tasks").frame.task) == ["t3", "t2", "t1"]


def test_transfer_marks_seen_and_unseen(tmp_path: Path) -> None:
    trained = {"model": "tuned"}
    paths = [
        record(tmp_path / "a", {"t": [P]}, model=trained),
        record(tmp_path / "b", {"t": [F]}, model=trained, **CODEX),
        record(tmp_path / "c", {"t": [F]}),
    ]
    with load_runs(paths, trained=["tuned=react"]) as runs:
        frame = Report(runs).table("transfer").frame.set_index("model")
    tuned, plain = frame.loc["tuned"], frame.loc["m"]
    assert (tuned.react, tuned.react_seen, tuned.codex, tuned.codex_seen) == (1, True, 0, False)
    assert (tuned.seen, tuned.unseen) == (1, 0)
    assert plain.react_seen is None
    assert math.isnan(plain.codex)


def test_what_a_model_was_trained_in_is_read_from_its_manifest(tmp_path: Path) -> None:
    model = {"model": "tuned", "trained_in": ["codex"]}
    with load_runs([record(tmp_path / "a", {"t": [P]}, model=model)]) as runs:
        assert row(runs, "transfer").trained_in == "codex"


SENT = FirstSent(system_sha256="1", system_bytes=1, tools_sha256="1", tools_bytes=1, tools=1)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {}),
        (CODEX, {}),
        ({"model": {"model": "other"}, "context_window": 9}, {}),
        ({"tools": "mcp"}, {"tools": True}),
        ({"sampling": {"temperature": 1.0}}, {"sampling.temperature": True}),
        (
            {"harness": {"name": "react", "preset": "default", "version": "2"}},
            {"harness.version": True},
        ),
        ({"context_window": 9}, {"context_window": True}),
        ({"max_output": 9, "model": {"model": "other"}}, {"max_output": True}),
        ({"skills": "other texts"}, {"skills": True}),
        ({"model": {"model": "m", "version": "2"}}, {"model.version": False}),
        ({"seed": 7}, {"seed": False}),
        ({"tasks": {"t": "another hash"}}, {"tasks.t": True}),
        ({"first_sent": {"t": SENT}}, {}),
    ],
)
def test_what_differs_is_named_field_by_field(tmp_path: Path, fields, expected) -> None:
    a = record(tmp_path / "a", {"t": [P]})
    b = record(tmp_path / "b", {"t": [P]}, **fields)
    with load_runs([a, b]) as runs:
        assert {mark.field: not mark.minor for mark in marks(runs)} == expected
        notes = Report(runs).table("cross-harness").notes
        assert all(any(field in note for note in notes) for field in expected)


def test_a_changed_system_prompt_of_the_same_harness_is_told(tmp_path: Path) -> None:
    other = FirstSent(system_sha256="2", system_bytes=1, tools_sha256="1", tools_bytes=1, tools=1)
    a = record(tmp_path / "a", {"t": [P]}, first_sent={"t": SENT})
    b = record(tmp_path / "b", {"t": [P]}, first_sent={"t": other})
    with load_runs([a, b]) as runs:
        assert [mark.field for mark in marks(runs)] == ["first_sent.system_sha256 of t"]


def test_runs_of_other_tasks(tmp_path: Path) -> None:
    a = record(tmp_path / "a", {"t": [P], "u": [F]})
    b = record(tmp_path / "b", {"t": [P]}, **CODEX)
    with load_runs([a, b]) as runs:
        (mark,) = marks(runs)
        assert str(mark) == "codex · m: tasks is 1 tasks, not 2 (1 in both) (not comparable)"
        assert compare(*runs.runs, 1).comparable


def test_behaviour_needs_no_tasks_but_what_is_compared_with_them_does(tmp_path: Path) -> None:
    trace = Trace(
        calls=(model_call(("bash", "{}"), offered=["bash"]),),
        tool_calls=(tool("mail_send", {"to": "ann"}), tool("mail_list", reply="ann")),
    )
    folder = record(tmp_path / "a", {"t": [P, F]}, {"t#0": trace, "t#1": trace})
    with load_runs([folder]) as runs:
        report = Report(runs)
        found = row(runs, "behaviour")
        assert (found.self_verification, found.shell_share) == (1, 1)
        assert math.isnan(found.tool_coverage)
        assert any("no suite 'nowhere'" in note for note in report.table("behaviour").notes)
        used = report.table("tool-use").frame.iloc[0]
        assert (used.tool, used.kind, used.calls, used.calls_passed) == ("bash", "shell", 2, 1)
        example = report.table("measures").frame.set_index("measure").example
        assert example["self_verification"] == "t#0"
        assert example["useless_loops"] == ""


def test_cost_by_price_and_none_without_one(tmp_path: Path) -> None:
    a = record(tmp_path / "a", {"t": [P, F]}, model={"model": "org/gpt-x-1"})
    b = record(tmp_path / "b", {"t": [F]})
    prices = [Price(model="GPT-x*", input=1.0, output=10.0)]
    with load_runs([a, b]) as runs:
        priced, unpriced = Report(runs, prices).table("cost").frame.itertuples()
        assert priced.usd == pytest.approx(2 * (900 * 1 + 100 * 10) / 1e6)
        assert priced.usd_per_pass == priced.usd
        assert math.isnan(unpriced.usd)
        assert "| - |" in markdown(Report(runs, prices).table("cost"))


def test_the_shipped_prices() -> None:
    prices = read_prices()
    assert price_of("gpt-5-mini-2025-08-07", prices) == prices[0]
    assert price_of("noisy-reference", prices) is None
    assert all(price.output >= price.input > 0 for price in prices)


@pytest.mark.parametrize(
    "text", ["- {model: x}", "{", "- {model: x, input: 1, output: 2, cash: 3}"]
)
def test_a_bad_price_table_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"prices\.yaml: .* per million tokens"):
        read_prices(path)


def test_every_table_of_every_kind_of_run_can_be_written(tmp_path: Path, pair: Runs) -> None:
    empty = record(tmp_path / "empty", {})
    with load_runs([empty]) as none:
        for n, runs in enumerate((pair, none)):
            tables = Report(runs).tables()
            assert [table.name for table in tables] == list(TABLES)
            written = write_tables(tables, tmp_path / f"out{n}")
            assert len(written) == 3 * len(tables)
            for table in tables:
                assert set(table.columns) <= set(table.frame.columns), table.name
                kept = pd.read_parquet(tmp_path / f"out{n}" / f"{table.name}.parquet")
                assert list(kept.columns) == list(table.frame.columns)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, pair: Runs) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="choose another folder with --out"):
        write_tables(Report(pair).tables()[:1], tmp_path / "file")


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.5, "share", "50.0%"),
        (math.nan, "share", "-"),
        (math.inf, "count", "∞"),
        (12345, "count", "12,345"),
        (12_345, "tokens", "12.3k"),
        (9_999, "tokens", "9999"),
        (0.0042, "money", "$0.0042"),
        (1234.5, "money", "$1,234.50"),
        (True, "flag", "yes"),
        (None, "flag", "-"),
        (0.00004, "number", "4e-05"),
    ],
)
def test_how_values_are_written(value, kind, text: str) -> None:
    assert shown(value, kind) == text


@settings(max_examples=15)
@given(
    st.lists(
        st.lists(st.sampled_from([P, F, ERROR]), min_size=2, max_size=2), min_size=1, max_size=5
    )
)
def test_pessimistic_figures_are_never_above_the_others(
    tmp_path_factory: pytest.TempPathFactory, ends: list[list[str]]
) -> None:
    folder = record(tmp_path_factory.mktemp("run") / "a", {f"t{n}": e for n, e in enumerate(ends)})
    with load_runs([folder]) as runs:
        found = row(runs, "cross-harness")
    assert not found.pessimistic_pass_at_1 > found.pass_at_1
    assert found.attempted == found.graded + found.errored
