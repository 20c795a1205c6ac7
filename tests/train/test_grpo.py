"""The local trainer on a model of random weights: it learns, it resumes, it mixes harnesses."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch", reason="needs torch: make verl-cpu")
pytest.importorskip("transformers", reason="needs transformers: make verl-cpu")

from rollout.errors import UsageError  # noqa: E402
from rollout.manifest import Manifest  # noqa: E402
from rollout.runner import RunnerStopped  # noqa: E402
from rollout.store import EpisodeStore, lock_folder  # noqa: E402
from train.grpo import _parser, main  # noqa: E402
from train.local.checkpoint import Checkpoints, MetricsFile  # noqa: E402
from train.local.loss import policy_loss  # noqa: E402
from train.local.rules import GrpoRules  # noqa: E402
from train.local.run import LocalRun  # noqa: E402
from train.mix import parse_mix  # noqa: E402
from train.tiny import make_model, make_tokenizer, save  # noqa: E402

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[2]
SUITE = "support.letters"
RULES = GrpoRules(batch=2, group=3, learning_rate=1e-2)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    tokenizer = make_tokenizer(["write small letters", "You are an agent"], 320)
    save(make_model(tokenizer, seed=0, width=32, layers=1, window=2048), tokenizer, folder)
    return str(folder)


def train(model: str, folder: Path, steps: int, harness: str = "react", **more: Any) -> Path:
    rules, resume = more.pop("rules", RULES), more.pop("resume", False)
    return asyncio.run(
        LocalRun(
            model=model,
            folder=folder,
            suite=SUITE,
            mix=parse_mix(harness),
            rules=rules,
            steps=steps,
            max_tokens=8,
            sandbox="local",
            **more,
        ).train(resume=resume)
    )


def weights(folder: Path) -> Any:
    from safetensors.torch import load_file

    checkpoint = Checkpoints(folder / "checkpoints").latest()
    assert checkpoint is not None
    return load_file(checkpoint / "model.safetensors")


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line) for line in lines]


def same_training(one: Path, other: Path) -> None:
    """The same episodes, and the same weights but for the order in which floats were added."""
    names = ("step", "reward", "episode/tokens", "groups/zero_variance", "staleness")
    told = [[[line.get(name) for name in names] for line in metrics(f)] for f in (one, other)]
    assert told[0] == told[1]
    mine, theirs = weights(one), weights(other)
    for name, tensor in mine.items():
        assert torch.allclose(tensor, theirs[name], atol=1e-4), name


def test_a_run_that_goes_on_is_the_run_that_never_stopped(model: str, tmp_path: Path) -> None:
    train(model, tmp_path / "whole", 4, evaluation=SUITE, eval_every=2)
    train(model, tmp_path / "parts", 2, evaluation=SUITE, eval_every=2)
    train(model, tmp_path / "parts", 4, evaluation=SUITE, eval_every=2, resume=True)
    same_training(tmp_path / "whole", tmp_path / "parts")
    lines = metrics(tmp_path / "whole")
    assert [line["step"] for line in lines] == [0, 0, 1, 2, 2, 3, 4]
    assert any("held_out/react/pass^3" in line for line in lines)
    assert {line["staleness"] for line in lines if "staleness" in line} == {0.0}


def test_episodes_of_a_training_are_runs_like_any_other(model: str, tmp_path: Path) -> None:
    train(model, tmp_path / "run", 2, evaluation=SUITE)
    for part, attempts in (("evals/000000", 3), ("evals/000002", 3), ("rollouts/000001", 3)):
        told = Manifest.read(tmp_path / "run" / part / "react")
        assert told.model["model"] == f"policy@{int(part[-6:])}"
        assert told.attempts == attempts
        with EpisodeStore.open(tmp_path / "run" / part / "react") as store:
            assert {episode.task_id for episode in store.latest().values()} == set(told.tasks)
        assert set(told.first_sent) == set(told.tasks)


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_lost(model: str, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    argv = [sys.executable, "-m", "train.grpo", "--suite", SUITE, "--model", model, "--quiet"]
    argv += ["--out", str(folder), "--steps", "3", "--batch", "2", "--group", "3"]
    argv += ["--learning-rate", "0.01", "--max-tokens", "8", "--sandbox", "local"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    for moment in ("rollouts/000000/react/traces.zst", "checkpoints/000001", "rollouts/000002"):
        resume = ["--resume"] if (folder / "settings.json").exists() else []
        process = subprocess.Popen([*argv, *resume], cwd=ROOT, env=environment)
        while not (folder / moment).exists() and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run([*argv, "--resume"], cwd=ROOT, env=environment).returncode == 0
    train(model, tmp_path / "whole", 3)
    same_training(tmp_path / "whole", folder)


def test_reward_rises(model: str, tmp_path: Path) -> None:
    rules = msgspec.structs.replace(RULES, batch=5, group=6, learning_rate=3e-2)
    train(model, tmp_path / "run", 12, rules=rules)
    rewards = [line["reward"] for line in metrics(tmp_path / "run")]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.2


def test_harnesses_are_mixed_and_told_apart(model: str, tmp_path: Path) -> None:
    rules = msgspec.structs.replace(RULES, batch=4, kl=0.1, epochs=2, mini_batches=2)
    train(model, tmp_path / "run", 2, "react:0.5,react_text:0.5", rules=rules)
    lines = metrics(tmp_path / "run")
    assert all("reward/react" in line and "reward/react_text" in line for line in lines)
    assert lines[1]["kl/initial"] > 0
    assert lines[1]["kl/old"] != 0


def test_other_settings_are_refused(model: str, tmp_path: Path) -> None:
    train(model, tmp_path / "run", 1)
    with pytest.raises(UsageError, match="add --resume"):
        train(model, tmp_path / "run", 1)
    rules = msgspec.structs.replace(RULES, group=4)
    with pytest.raises(UsageError, match="group was 3"):
        train(model, tmp_path / "run", 2, rules=rules, resume=True)


def test_check_opens_everything_and_trains_nothing(
    model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    argv = ["--suite", SUITE, "--model", model, "--check", "--out", str(tmp_path / "run")]
    main([*argv, "--eval", SUITE, "--sandbox", "local"])
    assert capsys.readouterr().out == "react: 5 tasks, 5 held out\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--suite", SUITE], "--model is missing"),
        (["--suite", SUITE, "--model", "/nowhere"], "no config.json"),
        (["--suite", "nothing", "--model", "MODEL"], "unknown suite 'nothing'"),
        (["--suite", SUITE, "--model", "MODEL", "--harness", "react:0"], "positive weight"),
        (["--suite", SUITE, "--model", "MODEL", "a.b=1"], "need --trainer verl"),
        (["--suite", SUITE, "--model", "MODEL", "--engine-memory", "0.5"], "needs --engine vllm"),
        (["--suite", SUITE, "--model", "MODEL", "--engine-memory", "2"], "between 0 and 1"),
        (["--suite", SUITE, "--tasks", "3"], "--tasks; options of the suite go into the quotes"),
        (["--suite", SUITE, "--model", "MODEL", "--group", "1"], "--group: must be at least 2"),
        (["--suite", SUITE, "--model", "MODEL", "--kl", "-1"], "--kl: must be at least 0, not -1"),
        (["--suite", SUITE, "--model", "MODEL", "--warmup", "-1"], "--warmup: must be at least 0"),
        (["--suite", SUITE, "--model", "MODEL", "--eval-every", "2"], "needs --eval SPEC"),
        (["--trainer", "verl", "--eval-harness", "react"], "--eval-harness: needs --eval SPEC"),
        (["--suite", f"{SUITE} --harness codex", "--model", "MODEL"], "--harness is set by the"),
        (
            ["--suite", f"{SUITE} --model=other", "--model", "MODEL"],
            "--model is set by the trainer",
        ),
    ],
)
def test_wrong_usage_is_one_line(
    argv: list[str], told: str, model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    argv = [word.replace("MODEL", model) for word in argv]
    with pytest.raises(SystemExit) as ended:
        main([*argv, "--out", str(tmp_path / "run"), "--quiet"])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_where_the_model_is_and_how_far_it_was_is_told(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    train(model, out, 1, rules=GrpoRules(batch=1, group=2))
    flags = {"--suite": SUITE, "--model": model, "--steps": "1", "--batch": "1", "--group": "2"}
    argv = [word for flag in flags.items() for word in flag]
    main([*argv, "--max-tokens", "8", "--sandbox", "local", "--out", str(out), "--resume"])
    captured = capsys.readouterr()
    assert captured.out == f"in {out / 'checkpoints' / '000001'}\n"
    assert "1/1" in captured.err


def test_help_tells_the_defaults() -> None:
    run = LocalRun(model="", folder=Path(), suite="", mix=())
    defaults = {**msgspec.to_builtins(GrpoRules()), **vars(run)}
    told = 0
    for action in _parser()._actions:
        shown = re.search(r"\(([^() ]+)\)$", action.help or "")
        if shown and (default := defaults.get(action.dest)) is not None:
            told += 1
            assert type(default)(shown[1]) == default, action.dest
    assert told >= 15


def test_a_checkpoint_is_whole_or_not_there(model: str, tmp_path: Path) -> None:
    from train.local.engine import load_model

    policy, tokenizer = load_model(model)
    optimizer = torch.optim.AdamW(policy.parameters())
    checkpoints = Checkpoints(tmp_path, keep=2)
    left = tmp_path / ".000001.draft"
    left.mkdir()
    copy = tmp_path / "000001-best"
    copy.mkdir()
    for step in (1, 2, 3):
        checkpoints.save(step, policy, tokenizer, optimizer)
    assert not left.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000001-best", "000002", "000003"]
    assert checkpoints.latest() == tmp_path / "000003"


def test_a_disk_that_is_full_leaves_the_checkpoint_before(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from train.local.engine import load_model

    policy, tokenizer = load_model(model)
    optimizer = torch.optim.AdamW(policy.parameters())
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, policy, tokenizer, optimizer)

    def full(*_: object) -> None:  # as torch says it
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(UsageError, match=r"no checkpoint written .*; free some space, then resume"):
        checkpoints.save(2, policy, tokenizer, optimizer)
    assert [path.name for path in tmp_path.iterdir()] == ["000001"]


def test_metrics_of_steps_that_come_again_are_forgotten(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path, 0)
    for step in range(3):
        file.write(step, {"reward": step / 2})
    with (tmp_path / "metrics.jsonl").open("ab") as torn:
        torn.write(b'{"step": 3, "rew')
    assert [line["step"] for line in MetricsFile(tmp_path, 2).read()] == [0, 1]
    (tmp_path / "metrics.jsonl").write_text('{"step":0}\n{"step":\n{"step":2}\n')
    with pytest.raises(UsageError, match=r"metrics\.jsonl, line 2 is damaged"):
        MetricsFile(tmp_path, 2)


DAMAGES = {
    "settings.json": "settings.json is damaged",
    "metrics.jsonl": "metrics.jsonl, line 1 is damaged",
    "checkpoints/000001/model.safetensors": "remove .*000001 to resume from the one before",
    "checkpoints/000001/optimizer.pt": "optimizer.pt is damaged.*; remove .*000001",
    "checkpoints/000001/tokenizer.json": "remove .*000001 to resume from the one before",
}


def test_what_is_damaged_is_named(model: str, tmp_path: Path) -> None:
    train(model, tmp_path / "run", 1)
    for name, told in DAMAGES.items():
        path = tmp_path / "run" / name
        whole = path.read_bytes()
        path.write_bytes(
            whole[:20] + b"\n" if name == "metrics.jsonl" else whole[: len(whole) // 2]
        )
        with pytest.raises(UsageError, match=told):
            train(model, tmp_path / "run", 2, resume=True)
        path.write_bytes(whole)
    for path in (tmp_path / "run/checkpoints/000001").glob("tokenizer*"):
        path.unlink()
    with pytest.raises(UsageError, match="tokenizer knows no words"):
        train(model, tmp_path / "run", 2, resume=True)


def test_one_trainer_a_folder(model: str, tmp_path: Path) -> None:
    lock = lock_folder(tmp_path)
    with pytest.raises(UsageError, match=f"is being written by process {os.getpid()}"):
        train(model, tmp_path, 1)
    os.close(lock)
    with pytest.raises(UsageError, match=r"no config\.json"):
        train(str(tmp_path / "nothing"), tmp_path, 1)
    train(model, tmp_path, 1)  # what was refused has left no settings behind


@pytest.mark.parametrize("damage", ["nan", "missing"])
def test_a_model_that_lacks_weights_is_refused(damage: str, model: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    from train.local.engine import load_model

    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    tensors = load_file(folder / "model.safetensors")
    name = next(name for name in tensors if "q_proj" in name)
    if damage == "nan":
        tensors[name][0, 0] = float("nan")
    else:
        del tensors[name]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UsageError, match=name):
        load_model(str(folder))


def test_a_gradient_that_is_not_finite_changes_no_weight(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from train.local import update

    def spoilt(*_: object) -> Any:
        told = policy_loss(*_)  # type: ignore[arg-type]
        return replace(told, loss=told.loss * float("nan"))

    monkeypatch.setattr(update, "policy_loss", spoilt)
    train(model, tmp_path / "run", 1)
    (line,) = metrics(tmp_path / "run")
    assert line["updates/skipped"] == 1
    assert all(tensor.isfinite().all() for tensor in weights(tmp_path / "run").values())


def test_a_step_without_a_single_verdict_stops_training(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("no paper")

    monkeypatch.setattr("support.letters.Desk.grade", broken)
    with pytest.raises(RunnerStopped, match=r"none of its 6 episodes was graded.*no paper"):
        train(model, tmp_path / "run", 1)
    assert metrics(tmp_path / "run") == []
    monkeypatch.undo()
    train(model, tmp_path / "run", 1, resume=True)
    assert metrics(tmp_path / "run")[0]["episodes/trained"] > 0


def test_prompts_that_do_not_fit_stop_training(model: str, tmp_path: Path) -> None:
    shutil.copytree(model, tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    told = msgspec.json.decode(config.read_bytes()) | {"max_position_embeddings": 10}
    config.write_bytes(msgspec.json.encode(told))
    with pytest.raises(RunnerStopped, match=r"or holds a token of the policy.*context window 10"):
        train(str(tmp_path / "model"), tmp_path / "run", 1)


def test_the_last_evaluation_stays_when_training_goes_on(model: str, tmp_path: Path) -> None:
    train(model, tmp_path / "run", 1, evaluation=SUITE)
    train(model, tmp_path / "run", 2, evaluation=SUITE, resume=True)
    held_out = [line["step"] for line in metrics(tmp_path / "run") if "reward" not in line]
    assert held_out == [0, 1, 2]


def test_terminated_it_says_how_to_go_on(model: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    argv = [sys.executable, "-m", "train.grpo", "--suite", SUITE, "--model", model, "--quiet"]
    argv += ["--out", str(folder), "--batch", "1", "--group", "2", "--max-tokens", "8"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*argv, "--sandbox", "local"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    while not (folder / "rollouts").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    told = process.communicate()[1]
    assert process.returncode == 130
    assert told.splitlines()[-1] == "interrupted; the same command with --resume goes on"
