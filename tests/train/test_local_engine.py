"""The engine against transformers' own forward pass and `generate`."""

import asyncio
import random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: make verl-cpu")
transformers = pytest.importorskip("transformers", reason="needs transformers: make verl-cpu")

from rollout.errors import ModelError  # noqa: E402
from train.engine import SamplingParams  # noqa: E402
from train.local.engine import LocalEngine  # noqa: E402
from train.local.sampling import draw  # noqa: E402

pytestmark = pytest.mark.verl

STOP = 1


class NoTokenizer:
    eos_token_id = STOP


@pytest.fixture
def model() -> Any:
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=600,
        eos_token_id=STOP,
        pad_token_id=0,
    )
    made = transformers.Qwen3ForCausalLM(config).eval()
    for parameter in made.parameters():
        if parameter.ndim > 1:
            parameter.data *= 8  # far from uniform, so that mistakes show
    return made


@pytest.fixture
def engine(model: Any) -> Any:
    made = LocalEngine(model, NoTokenizer(), slots=6)
    yield made
    made.close()


def prompts(count: int) -> list[list[int]]:
    dice = random.Random(1)
    return [[dice.randrange(2, 64) for _ in range(dice.randrange(3, 300))] for _ in range(count)]


def told(model: Any, prompt: list[int], ids: list[int], temperature: float = 1.0) -> list[float]:
    """Log-probabilities of a whole forward pass."""
    with torch.no_grad():
        logits = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
    logprobs = torch.log_softmax(logits / temperature, -1)
    return logprobs.gather(-1, torch.tensor(ids)[:, None])[:, 0].tolist()


async def test_logprobs_are_those_of_a_whole_forward_pass(engine: Any, model: Any) -> None:
    asked = prompts(15)
    sampled = await asyncio.gather(
        *(
            engine.generate(p, SamplingParams(5 + 3 * n, temperature=0.7, seed=n), request=str(n))
            for n, p in enumerate(asked)
        )
    )
    for prompt, one in zip(asked, sampled, strict=True):
        assert one.logprobs == pytest.approx(told(model, prompt, one.ids, 0.7), abs=1e-4)
        assert one.finish == ("stop" if one.ids[-1] == STOP else "length")


async def test_an_episode_goes_on_from_its_last_call(engine: Any, model: Any) -> None:
    prompt = prompts(1)[0]
    for turn in range(4):
        one = await engine.generate(prompt, SamplingParams(6, seed=turn), request="a")
        assert one.logprobs == pytest.approx(told(model, prompt, one.ids), abs=1e-4)
        prompt = [*prompt, *one.ids, 5, 6, 7]


async def test_greedy_is_what_generate_says(engine: Any, model: Any) -> None:
    for prompt in prompts(3):
        one = await engine.generate(prompt, SamplingParams(20, temperature=0), request="a")
        expected = model.generate(torch.tensor([prompt]), max_new_tokens=20, do_sample=False)
        assert one.ids == expected[0, len(prompt) :].tolist()


async def test_tokens_do_not_depend_on_the_company(engine: Any) -> None:
    asked = prompts(9)

    async def say(number: int) -> Any:
        return await engine.generate(asked[number], SamplingParams(9, seed=number), request="")

    alone = [(await say(number)).ids for number in range(9)]
    together = await asyncio.gather(*(say(number) for number in range(9)))
    assert [one.ids for one in together] == alone


async def test_new_weights_abort_calls_and_empty_the_cache(engine: Any, model: Any) -> None:
    prompt = prompts(1)[0]
    first = await engine.generate(prompt, SamplingParams(8, temperature=0), request="a")
    running = asyncio.create_task(engine.generate(prompt, SamplingParams(290), request="b"))
    await asyncio.sleep(0)
    async with engine.updating("1"):
        for parameter in model.parameters():
            parameter.data += 0.3
    aborted = await running
    assert aborted.finish in ("abort", "stop", "length")
    second = await engine.generate(prompt, SamplingParams(8, seed=1), request="a")
    assert (first.weights, second.weights) == ("0", "1")
    assert second.logprobs == pytest.approx(told(model, prompt, second.ids), abs=1e-4)


async def test_a_cancelled_call_frees_its_slot(engine: Any) -> None:
    running = [
        asyncio.create_task(engine.generate([2, 3], SamplingParams(500), request=str(n)))
        for n in range(6)
    ]
    await asyncio.sleep(0)
    for task in running:
        task.cancel()
    one = await engine.generate([2, 3], SamplingParams(2), request="next")
    assert len(one.ids) <= 2


async def test_calls_are_told_when_the_engine_fails(engine: Any) -> None:
    """Those under way, and the one whose unknown token the model fails at."""
    running = asyncio.create_task(engine.generate([2, 3], SamplingParams(500), request="a"))
    await asyncio.sleep(0)
    unknown = engine.generate([64], SamplingParams(1), request="b")
    told = await asyncio.gather(running, unknown, return_exceptions=True)
    assert [type(one) for one in told] == [ModelError, ModelError]
    with pytest.raises(ModelError, match="IndexError"):
        await engine.generate([2], SamplingParams(1), request="c")


def test_draws_follow_the_distribution_that_is_asked_for() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    dice = random.Random(0)
    plain, top_k, top_p = (
        SamplingParams(1),
        SamplingParams(1, top_k=2),
        SamplingParams(1, top_p=0.6),
    )
    for params, kept in ((plain, 4), (top_k, 2), (top_p, 1)):
        rows = 4000
        ids, logprobs = draw(
            logits.repeat(rows, 1), [params] * rows, [dice.random() for _ in range(rows)]
        )
        expected = torch.softmax(logits[:kept], -1)
        shares = torch.bincount(torch.tensor(ids), minlength=4)[:kept] / rows
        assert shares.tolist() == pytest.approx(expected.tolist(), abs=0.03)
        assert logprobs == pytest.approx([expected[i].log().item() for i in ids], abs=1e-5)


def test_the_last_token_can_be_drawn() -> None:
    ids, _ = draw(torch.zeros(1, 5), [SamplingParams(1)], [1 - 1e-16])
    assert ids == [4]
