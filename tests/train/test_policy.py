import base64
from array import array
from collections.abc import Sequence
from typing import Any

import pytest

from rollout.gateway.upstream import ModelRequest, Refused, Transient
from rollout.types import JsonObject, Task
from train.engine import Sampled, SamplingParams
from train.policy import PolicyUpstream


class Characters:
    """A tokenizer of one token a character, and a template that joins what was said."""

    def __init__(self, opening: str = "") -> None:
        self.opening = opening
        self.seen: Any = None

    def apply_chat_template(self, conversation: Any, **options: Any) -> list[int]:
        self.seen = conversation, options
        told = "".join(str(message.get("content", "")) for message in conversation)
        return list(map(ord, told + self.opening))

    def decode(self, token_ids: Any, **options: Any) -> str:
        return "".join(map(chr, token_ids))


class Scripted:
    """An engine that says one thing."""

    def __init__(self, text: str, finish: Any = "stop") -> None:
        self.text, self.finish = text, finish
        self.asked: list[tuple[SamplingParams, str, Sequence[bytes]]] = []

    async def generate(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        request: str,
        images: Sequence[bytes] = (),
    ) -> Sampled:
        self.asked.append((params, request, images))
        ids = list(map(ord, self.text))
        return Sampled(ids, [-0.5] * len(ids), self.finish, weights="7")


def asks(content: Any = "hello", **body: Any) -> ModelRequest:
    told: JsonObject = {"messages": [{"role": "user", "content": content}], **body}
    return ModelRequest(dialect="chat", body=told, task=Task(id="t", prompt=""), seed=3)


def serve(engine: Scripted, opening: str = "", window: int = 100) -> PolicyUpstream:
    return PolicyUpstream(engine, Characters(opening), model="tiny", context_window=window)


async def test_tokens_pass_through_and_text_is_parsed() -> None:
    text = '<think>a</think><tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
    reply = await serve(Scripted(text)).complete(asks())
    assert reply.prompt_ids == array("i", map(ord, "hello")).tobytes()
    assert reply.response_ids == array("i", map(ord, text)).tobytes()
    assert reply.logprobs == array("f", [-0.5] * len(text)).tobytes()
    assert (reply.finish, reply.weights, reply.usage.completion) == ("tool_calls", "7", len(text))
    message = reply.body["choices"][0]["message"]
    assert message["content"] is None
    assert message["reasoning_content"] == "a"
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"x": 1}'}


async def test_a_prompt_that_opens_a_thought() -> None:
    reply = await serve(Scripted("b</think>c"), opening="<think>\n").complete(asks())
    message = reply.body["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("c", "b")


async def test_calls_have_ids_of_their_own() -> None:
    call = '<tool_call>{"name": "f"}</tool_call>'
    engine = serve(Scripted(call + call))
    replies = [await engine.complete(asks(text)) for text in ("one", "two")]
    ids = [call["id"] for r in replies for call in r.body["choices"][0]["message"]["tool_calls"]]
    assert len(set(ids)) == 4


async def test_the_reply_is_clamped_to_the_window() -> None:
    engine = Scripted("x")
    upstream = serve(engine, window=8)
    await upstream.complete(asks(max_tokens=50))
    await upstream.complete(asks(max_completion_tokens=2, temperature=0))
    assert [params.max_tokens for params, _, _ in engine.asked] == [3, 2]
    assert [params.temperature for params, _, _ in engine.asked] == [1.0, 0.0]
    assert {request for _, request, _ in engine.asked} == {"t/3"}


async def test_a_full_window_is_refused() -> None:
    with pytest.raises(Refused, match="5 tokens") as refused:
        await serve(Scripted("x"), window=5).complete(asks())
    assert refused.value.code == "context_length_exceeded"


async def test_an_aborted_call_is_asked_again() -> None:
    with pytest.raises(Transient):
        await serve(Scripted("", finish="abort")).complete(asks())


async def test_a_cut_reply_says_so() -> None:
    assert (await serve(Scripted("so", finish="length")).complete(asks())).finish == "length"


async def test_the_seed_follows_from_attempt_and_prompt() -> None:
    engine = Scripted("x")
    upstream = serve(engine)
    for text in ("one", "one", "two"):
        await upstream.complete(asks(text))
    first, again, other = (params.seed for params, _, _ in engine.asked)
    assert first == again != other


async def test_pictures_reach_the_engine() -> None:
    url = f"data:image/png;base64,{base64.b64encode(b'png').decode()}"
    engine = Scripted("x")
    await serve(engine, window=1000).complete(
        asks([{"type": "image_url", "image_url": {"url": url}}])
    )
    assert engine.asked[0][2] == [b"png"]
    with pytest.raises(Refused, match="data:"):
        await serve(engine, window=1000).complete(
            asks([{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}])
        )


async def test_template_variables_and_tools_are_passed_on() -> None:
    tokenizer = Characters()
    upstream = PolicyUpstream(Scripted("x"), tokenizer, template={"enable_thinking": False})
    await upstream.complete(asks(tools=[{"type": "function"}], chat_template_kwargs={"a": 1}))
    options = tokenizer.seen[1]
    assert (options["enable_thinking"], options["a"]) == (False, 1)
    assert options["tools"] == [{"type": "function"}]
    assert await upstream.count_tokens({"messages": [{"content": "four"}]}) == 4
