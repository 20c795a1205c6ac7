"""What the records hold of tokens, against vLLM's own tokenizer and the model's own probabilities.

The tiny model thinks and calls `clock_now` where a line has ended, which is how a prompt ends; where
thinking is switched off it ends otherwise, and the model babbles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from support.desk import TASK, Desk, TalkingDesk
from support.engine import Engine, Recorded, Scorer, ints, record

from harness_wrappers.codex import Codex
from harness_wrappers.react import React
from rollout.errors import UsageError
from rollout.sandbox import SandboxProvider
from rollout.types import Outcome
from train.samples import build_samples

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

HABIT = ' nine</think><tool_call>{"name":"clock_now","arguments":{}}</tool_call><|im_end|>'
PLAIN = {"chat_template_kwargs": {"enable_thinking": False}}
MAIL = r'\{"name": "mail_send", "arguments": \{"to": "[0-9]{2}", "body": "[0-9]{4}"\}\}'
TOLERANCE = 1e-3
"""Of a log-probability, absolute."""

Record = Callable[..., Recorded]


@pytest.fixture(scope="module")
def react(engine: Engine, sandbox_provider: SandboxProvider) -> Record:
    def run(sampling: dict[str, Any], tokens: int, user: tuple[str, ...] = ()) -> Recorded:
        task = msgspec.structs.replace(TASK, max_turns=3)
        desk = TalkingDesk(*user) if user else Desk()
        options = {"sampling": {"seed": 3, **sampling}, "max_output": tokens}
        return record(engine, React(), desk, "native", sandbox_provider, task, **options)

    return run


@pytest.fixture(scope="module")
def acting(react: Record) -> Recorded:
    """Three calls of a tool, each after some thought."""
    return react({"temperature": 0.0}, 48)


@pytest.fixture(scope="module")
def babbling(react: Record) -> Recorded:
    """Three answers, between which the user speaks; from a distribution that sampling has narrowed."""
    narrow = {"temperature": 0.7, "top_p": 0.9}
    return react({**narrow, "stop": ["e"], **PLAIN}, 400, user=("好的", "go on"))


@pytest.fixture(scope="module")
def forced(react: Record) -> Recorded:
    """Three calls of a tool that a grammar dictates."""
    grammar = {"structured_outputs": {"regex": f"<tool_call>{MAIL}</tool_call>"}}
    return react({"temperature": 1.0, **grammar, **PLAIN}, 400)


@pytest.fixture(scope="module")
def codex(engine: Engine, sandbox_provider: SandboxProvider) -> Recorded:
    """Real Codex, whose third call is held back by the turn limit."""
    harness = Codex("", "slim")
    try:
        asyncio.run(harness.prepare())
    except UsageError as error:
        pytest.skip(str(error))
    task = msgspec.structs.replace(TASK, max_turns=2)
    options = {"sampling": {"temperature": 0.0}, "max_output": 48}
    return record(engine, harness, Desk(), "mcp", sandbox_provider, task, **options)


@pytest.fixture(params=["acting", "babbling", "forced", "codex"])
def recorded(request: pytest.FixtureRequest) -> Recorded:
    found: Recorded = request.getfixturevalue(request.param)
    assert found.episode.outcome is not Outcome.INFRA_ERROR, found.episode.reason
    assert len(found.trace.calls) >= 2
    return found


def test_the_prompt_s_ids_are_those_of_the_chat_template(engine: Engine, recorded: Recorded):
    for call, body in recorded.pairs:
        assert ints(call.prompt_ids) == engine.tokenize(body)


def test_every_sampled_token_has_a_logprob(recorded: Recorded):
    for call in recorded.trace.calls:
        assert len(call.logprobs) == len(call.response_ids) == 4 * call.usage.completion > 0
        assert len(call.prompt_ids) == 4 * call.usage.prompt


@pytest.mark.parametrize("kind", ["acting", "babbling", "codex"])
def test_logprobs_are_the_model_s_own(kind, scorer: Scorer, request):
    """Those of the plain softmax, whatever the temperature: vLLM's `--logprobs-mode raw_logprobs`."""
    for call in request.getfixturevalue(kind).trace.calls:
        prompt, response = ints(call.prompt_ids), ints(call.response_ids)
        told = np.frombuffer(call.logprobs, "<f4")
        assert np.abs(told - scorer.score(prompt, response)).max() < TOLERANCE


def test_another_prompt_would_have_been_noticed(babbling: Recorded, scorer: Scorer):
    call = babbling.trace.calls[0]
    prompt, response = ints(call.prompt_ids), ints(call.response_ids)
    told = np.frombuffer(call.logprobs, "<f4")
    assert np.abs(told - scorer.score(prompt[:-30] + prompt[-29:], response)).max() > 10 * TOLERANCE


def test_under_a_grammar_logprobs_are_those_among_what_it_allows(forced: Recorded, scorer: Scorer):
    for call in forced.trace.calls:
        told = np.frombuffer(call.logprobs, "<f4")
        free = scorer.score(ints(call.prompt_ids), ints(call.response_ids))
        assert (told >= free - TOLERANCE).all()
        assert told.sum() > free.sum() + 10


@pytest.mark.parametrize("kind", ["acting", "codex"])
def test_ids_survive_the_parsers_of_reasoning_and_tools(kind, engine: Engine, request):
    for call in request.getfixturevalue(kind).trace.calls:
        assert engine.detokenize(ints(call.response_ids)) == "<think>" + HABIT
        assert call.finish == "tool_calls"
        reply = call.reply.decode()
        assert " nine" in reply
        assert "clock_now" in reply
        assert "<think>" not in reply
        assert "<tool_call>" not in reply


def test_tools_are_really_called(acting: Recorded, forced: Recorded):
    assert [(call.name, call.status) for call in acting.trace.tool_calls] == [
        ("clock_now", 200)
    ] * 3
    assert [call.name for call in forced.trace.tool_calls] == ["mail_send"] * 3
    assert all(call.arguments["to"].isdigit() for call in forced.trace.tool_calls)


@pytest.mark.parametrize("kind", ["acting", "codex"])
def test_turns_that_the_template_repeats_become_one_sample(kind, request):
    recorded = request.getfixturevalue(kind)
    (sample,), report = build_samples(recorded.episode, recorded.trace)
    calls = recorded.trace.calls
    assert len(sample.steps) == len(calls)
    assert [*sample.prompt_ids, *sample.response_ids] == [
        *ints(calls[-1].prompt_ids),
        *ints(calls[-1].response_ids),
    ]
    assert sample.response_ids[sample.response_mask].tolist() == [
        token for call in calls for token in ints(call.response_ids)
    ]
    assert report.trained == report.sampled == sum(call.usage.completion for call in calls)


@pytest.mark.parametrize("kind", ["babbling", "forced"])
def test_turns_that_it_renders_otherwise_are_samples_of_their_own(kind, request):
    """Here it leaves out the empty thoughts that the prompt had ended in, as Qwen3's does."""
    recorded = request.getfixturevalue(kind)
    samples, report = build_samples(recorded.episode, recorded.trace)
    assert len(samples) == len(recorded.trace.calls)
    for sample, call in zip(samples, recorded.trace.calls, strict=True):
        assert sample.prompt_ids.tolist() == ints(call.prompt_ids)
        assert sample.response_ids.tolist() == ints(call.response_ids)
        assert sample.response_mask.all()
    assert report.trained == report.sampled
