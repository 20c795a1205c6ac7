"""A model to try the trainers with, and what is said where its packages are missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from rollout.errors import UsageError
from train import grpo, sft, tiny
from train.packages import need_torch
from train.policy import PolicyUpstream

MISSING = "torch and transformers: pip install torch transformers, or use .venv-verl/bin/python"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter without torch."""
    find = importlib.util.find_spec
    heavy = ("torch", "transformers")
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name in heavy else find(name, *more),
    )


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("main", "argv"),
    [
        (grpo.main, ["--suite", "office_drills", "--model", "MODEL"]),
        (sft.main, ["--suite", "office_drills", "--model", "MODEL", "--out", "OUT"]),
        (tiny.main, ["MODEL"]),
    ],
)
def test_missing_packages_are_one_line(main, argv, tmp_path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word.replace("MODEL", str(tmp_path / "m")) for word in argv])
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert MISSING in line


@pytest.mark.usefixtures("bare")
def test_a_checkpoint_can_not_be_served_without_them() -> None:
    with pytest.raises(UsageError, match=r"--model train\.policy needs torch"):
        PolicyUpstream.from_spec("some/folder", "")
    with pytest.raises(UsageError, match="has no server"):
        PolicyUpstream.from_spec("some/folder", "http://localhost:8000/v1")


def test_what_is_there_is_not_written_over(tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit):
        tiny.main([str(tmp_path)])
    assert "is there already" in capsys.readouterr().err


@pytest.mark.verl
def test_a_tiny_model_is_one_command(tmp_path: Path, capsys) -> None:
    pytest.importorskip("torch", reason="needs torch: make verl-cpu")
    need_torch("this test")
    from train.local.engine import load_model

    folder = tmp_path / "runs" / "tiny"
    tiny.main([str(folder)])
    assert f"in {folder}" in capsys.readouterr().out
    model, tokenizer = load_model(str(folder))
    assert model.config.vocab_size == len(tokenizer)
