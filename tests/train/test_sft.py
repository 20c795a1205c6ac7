"""Distilling: what is trained is what the teacher said, and nothing else."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: make verl-cpu")
pytest.importorskip("transformers", reason="needs transformers: make verl-cpu")

from rollout.errors import UsageError  # noqa: E402
from train.local.batch import collate, logprobs  # noqa: E402
from train.lossy import render_with  # noqa: E402
from train.mix import parse_mix  # noqa: E402
from train.sft import SftRules, distil, main, masked, taught, train_on  # noqa: E402
from train.tiny import make_model, make_tokenizer, save  # noqa: E402

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]

SUITE = "office_drills --split train --count 8"


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("teacher")
    return asyncio.run(distil(SUITE, parse_mix("react,react_text"), folder, n=1))


@pytest.fixture(scope="module")
def tokenizer(episodes: Any) -> Any:
    calls = [call for _, trace in episodes for call in trace.calls]
    return make_tokenizer([call.request.decode() for call in calls], 700)


@pytest.fixture(scope="module")
def rows(episodes: Any, tokenizer: Any) -> Any:
    return taught(episodes, render_with(tokenizer), end=tokenizer.eos_token_id)


def test_the_mask_covers_replies_and_their_ends_alone(
    rows: Any, episodes: Any, tokenizer: Any
) -> None:
    assert len(rows) == len(episodes) == 16
    for row, (_, trace) in zip(rows, episodes, strict=True):
        trained = row.response_ids[row.response_mask]
        said = tokenizer.decode(trained.tolist()).split("<|im_end|>")
        assert len(said) == len(trace.calls) + 1  # the last one is what follows the last end
        assert said[-1] == ""
        assert said[-2] == trace.answer
        assert "tool_response" not in "".join(said)
        assert "Observation" not in "".join(said)
        calls = [text for text in said if "<tool_call>" in text or text.startswith("Action: ")]
        assert len(calls) == len(trace.tool_calls)


def test_episodes_of_another_teacher_are_not_taken_for_its_own(tmp_path: Path) -> None:
    mix = parse_mix("react")
    one = "office_drills --split train --count 1"
    first = asyncio.run(distil(one, mix, tmp_path, n=1))
    assert asyncio.run(distil(one, mix, tmp_path, n=1)) == first
    with pytest.raises(UsageError, match="teacher was 'reference'"):
        asyncio.run(distil(one, mix, tmp_path, teacher="noisy_reference:0.5", n=1))


def test_the_mask_is_shown(rows: Any, tokenizer: Any) -> None:
    shown = masked(rows[0], tokenizer)
    green = "".join(str(shown)[s.start : s.end] for s in shown.spans if s.style == "bold green")
    trained = rows[0].response_ids[rows[0].response_mask].tolist()
    assert green == "".join(f"{tokenizer.decode([token])}│" for token in trained)


def test_logprobs_are_of_the_masked_tokens(rows: Any, tokenizer: Any) -> None:
    model = make_model(tokenizer, seed=0, width=32, layers=1)
    told, entropy = logprobs(model, collate(rows[:3]), entropy=True)
    expected = []
    for row in rows[:3]:
        ids = torch.tensor(np.concatenate([row.prompt_ids, row.response_ids]))[None].long()
        all_ = torch.log_softmax(model(ids).logits[0, :-1], -1)
        each = all_.gather(-1, ids[0, 1:, None])[:, 0][len(row.prompt_ids) - 1 :]
        expected.append(each[torch.tensor(row.response_mask.copy())])
    assert torch.allclose(told, torch.cat(expected), atol=1e-4)
    assert (entropy >= 0).all()


def test_a_training_that_goes_astray_is_ended(rows: Any, tokenizer: Any) -> None:
    model = make_model(tokenizer, seed=0, width=32, layers=1)
    rules = SftRules(epochs=10, batch=8, learning_rate=1e30, warmup=1)
    with pytest.raises(UsageError, match="not finite; choose a lower --learning-rate"):
        list(train_on(model, rows, rules))


def test_it_learns_what_it_is_taught(rows: Any, tokenizer: Any) -> None:
    model = make_model(tokenizer, seed=0, width=32, layers=1)
    rules = SftRules(epochs=10, batch=8, learning_rate=1e-2, warmup=2)
    losses = [loss for _, loss in train_on(model, rows, rules)]
    assert len(losses) == 20
    assert losses[-1] < 0.7 * losses[0]


def test_a_teacher_who_passes_nothing_teaches_nothing(episodes: Any, tokenizer: Any) -> None:
    with pytest.raises(UsageError, match="passed none of its 0"):
        taught([], render_with(tokenizer), end=tokenizer.eos_token_id)


async def test_a_teacher_that_never_came_leaves_nothing_behind(tmp_path: Path) -> None:
    mix = parse_mix("react")
    with pytest.raises(UsageError, match="unknown model"):
        await distil(SUITE, mix, tmp_path, teacher="gpt4", n=1)
    assert await distil(SUITE, mix, tmp_path, teacher="reference", n=1)


def test_from_the_command_line(
    tokenizer: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tmp_path / "model", tmp_path / "out"
    save(make_model(tokenizer, seed=0, width=32, layers=1), tokenizer, model)
    argv = ["--suite", SUITE, "--model", str(model), "--out", str(out), "--attempts", "1"]
    main([*argv, "--show-mask"])
    assert "contacts_search" in capsys.readouterr().out
    main([*argv, "--epochs", "1", "--batch", "4"])
    assert (out / "model" / "model.safetensors").exists()
    with pytest.raises(SystemExit):
        main([*argv, "--epochs", "1", "--batch", "4"])
    assert f"{out / 'model'} is there already: remove it" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--suite", SUITE, "--model", "/nowhere", "--out", str(out)])
