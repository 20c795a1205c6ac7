"""The LLM judge: what it asks, what it reads, what it keeps, how it fails."""

import json

import pytest
from support.scripted_server import Drop, Fail, Garbage, ScriptedServer, text

from judges.cache import JudgeCache
from judges.llm import LLMJudge
from rollout.errors import JudgeError
from rollout.gateway.retry import Retry
from rollout.gateway.upstreams.openai import OpenAI
from rollout.judge import read_verdict

ASK = [{"role": "user", "content": "How good?"}]
GOOD = '{"score": 0.75, "reasoning": "good"}'


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        (GOOD, 0.75),
        (f"```json\n{GOOD}\n```", 0.75),
        (
            'Let me see {first}. {"score": 1, "reasoning": "it says {name} {\\"score\\": 0}"} So.',
            1.0,
        ),
        ('First {"score": 0.1}, no: {"score": 0.5, "reasoning": ""}', 0.5),
        ('{"verdict": {"score": 0.25}}', 0.25),
        ('{"reasoning": "a {nested} \\u4e0d", "parts": {"score": 0.9}, "score": 0.0}', 0.0),
    ],
)
def test_a_verdict_is_read_through_prose_and_braces(reply: str, score: float) -> None:
    verdict = read_verdict(reply)
    assert (verdict.score, verdict.raw) == (score, reply)


@pytest.mark.parametrize(
    "reply",
    ["", "Good.", '{"score": "high"}', '{"score": 1.5}', '{"score": true}', '{"score": NaN}', "{"],
)
def test_what_is_no_verdict_is_refused(reply: str) -> None:
    with pytest.raises(ValueError, match="score"):
        read_verdict(reply)


async def ask(server: ScriptedServer, cache: JudgeCache | None = None) -> float:
    upstream = OpenAI("scripted", server.url)
    try:
        judge = LLMJudge(upstream, cache, Retry(tries=3, base=0.001))
        return (await judge.ask(ASK)).score
    finally:
        await upstream.close()


async def test_it_asks_at_temperature_0_and_again_when_it_can_not_read() -> None:
    async with ScriptedServer() as server:
        server.queue(text("Good."), text(None), text(GOOD))
        assert await ask(server) == 0.75
        assert len(server.requests) == 3
        assert server.requests[0].body["temperature"] == 0.0
        assert server.requests[0].body["messages"] == ASK


async def test_transient_errors_are_waited_out() -> None:
    async with ScriptedServer() as server:
        server.queue(Fail(500), Drop(), text(GOOD))
        assert await ask(server) == 0.75


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Fail(503), "out of reach"),
        (Garbage(), "out of reach"),
        (Fail(404, "no such model"), "no such model"),
        (text("Good."), "no verdict"),
    ],
)
async def test_without_a_verdict_there_is_an_error_and_no_score(step, reason: str) -> None:
    async with ScriptedServer() as server:
        server.default = step
        with pytest.raises(JudgeError, match=reason):
            await ask(server)


async def test_a_reply_is_paid_for_once_and_an_unreadable_one_stays_what_it_was(tmp_path) -> None:
    path = tmp_path / "deep" / "cache.jsonl"
    async with ScriptedServer() as server:
        server.queue(text("Good."), text(GOOD))
        assert await ask(server, JudgeCache(path)) == 0.75
        server.default = Fail(500)
        assert await ask(server, JudgeCache(path)) == 0.75
        assert len(server.requests) == 2
    assert [json.loads(line)["reply"] for line in path.read_text().splitlines()] == ["Good.", GOOD]


def test_a_torn_line_is_no_loss(tmp_path) -> None:
    path = tmp_path / "cache.jsonl"
    JudgeCache(path).put("a", "m", "one")
    with path.open("a") as file:
        file.write('{"key": "torn')
    JudgeCache(path).put("b", "m", "two")
    cache = JudgeCache(path)
    assert [cache.get(key) for key in ("a", "torn", "b")] == ["one", None, "two"]


def test_model_messages_and_repetition_make_the_key() -> None:
    keys = {
        JudgeCache.key(body, repeat)
        for body in ({"model": "a", "m": 1}, {"m": 1, "model": "a"}, {"model": "b", "m": 1})
        for repeat in (0, 1)
    }
    assert len(keys) == 4
