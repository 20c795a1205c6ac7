"""verl's client as an engine: aborts, weights, limits, failures, the gate. Needs no verl."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rollout.gateway.upstream import Transient
from train.engine import Sampled, SamplingParams
from train.gate import Gate
from train.verl.engine import VerlEngine

END = 9


class Client:
    """Gives its answers one after the other, the last one again and again."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), []

    async def generate(self, **asked: Any) -> Any:
        self.asked.append(asked)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def told(*ids: int, stop: str = "completed", **steps: Any) -> SimpleNamespace:
    """A `TokenOutput`."""
    return SimpleNamespace(
        token_ids=list(ids), log_probs=[-0.1] * len(ids), stop_reason=stop, extra_fields=steps
    )


async def sample(client: Client, gate: Gate | None = None, **params: Any) -> Sampled:
    engine = VerlEngine(client, gate or Gate(), ends=(END,), pause=0.0)
    asked = SamplingParams(**{"max_tokens": 3, **params})
    return await engine.generate([1, 2], asked, request="milk/7")


async def test_a_reply_that_a_weight_update_cut_off_is_asked_for_again() -> None:
    client = Client(told(5, stop="aborted", global_steps=3), told(5, END, global_steps=4))
    sampled = await sample(client)
    assert (list(sampled.ids), sampled.finish, sampled.weights) == ([5, END], "stop", "4")
    assert [asked["request_id"] for asked in client.asked] == ["milk/7"] * 2


async def test_a_reply_that_went_on_over_an_update_names_both_versions() -> None:
    answer = told(END, global_steps=4, min_global_steps=3, max_global_steps=4)
    assert (await sample(Client(answer))).weights == "3-4"
    assert (await sample(Client(told(END)))).weights == ""


async def test_verl_says_completed_of_replies_that_are_cut() -> None:
    assert (await sample(Client(told(5, 6, 7)))).finish == "length"
    assert (await sample(Client(told(5, 6, END)))).finish == "stop"
    assert (await sample(Client(told(5, END)))).finish == "stop"


async def test_sampling_is_as_asked_without_a_seed() -> None:
    client = Client(told(END))
    await sample(client, temperature=0.5, top_p=0.9, seed=3)
    assert client.asked[0]["sampling_params"] == {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": -1,
        "repetition_penalty": 1.0,
        "logprobs": True,
        "max_tokens": 3,
    }


async def test_a_server_that_died_may_be_asked_again_by_the_gateway() -> None:
    with pytest.raises(Transient, match="verl: RuntimeError: no servers"):
        await sample(Client(RuntimeError("no servers")))


async def test_calls_wait_in_front_of_a_closed_gate_and_the_time_is_known() -> None:
    gate, client = Gate(), Client(told(END))
    gate.close()
    gate.close()
    call = asyncio.create_task(sample(client, gate))
    await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    assert client.asked == []
    held = gate.seconds()
    assert held > 0
    gate.open()
    assert list((await call).ids) == [END]
    after = gate.seconds()
    assert after >= held
    assert gate.seconds() == after
