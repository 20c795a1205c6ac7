"""The simulated user: what its model is asked, how its words reach the agent, when it is content."""

import pytest
from support.desk import Scripted, say

from environments.claw.user import PREFIX, SimulatedUser, UserSpec, wording
from rollout.errors import EnvironmentFault, ModelError
from rollout.gateway.upstream import Refused, Transient
from rollout.types import Task

TASK = Task(id="talk", prompt="算一下")


def user(*turns, rounds=8):
    upstream = Scripted(turns)
    return SimulatedUser(UserSpec(persona="安", max_rounds=rounds), upstream, TASK, 7), upstream


async def test_it_reads_the_conversation_and_answers_under_its_prefix():
    ann, upstream = user(say("  三十年  "), say("[DONE]"))
    assert await ann.reply("几年？") == f"{PREFIX}三十年"
    assert await ann.reply("好的。") is None
    first, second = (request.body for request in upstream.requests)
    assert "what you know:\n安\n" in first["messages"][0]["content"]
    assert (first["temperature"], first["messages"][1]["role"]) == (0.7, "user")
    said = "[用户]: 算一下\n[助手]: 几年？\n[用户]: 三十年\n[助手]: 好的。\n"
    assert said in second["messages"][1]["content"]
    assert ann.record() == {"rounds_used": 1, "max_rounds": 8, "done_reached": True}


def test_a_checkouts_own_prompts_are_read_from_its_source(tmp_path):
    path = tmp_path / "src" / "claw_eval" / "runner" / "user_agent.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "_SYSTEM_PROMPT = 'Be {persona}.'\n"
        "def ask(transcript):\n    user_msg = (f'So far: {transcript}. ' 'Go on.')\n",
        encoding="utf-8",
    )
    assert wording(str(tmp_path)) == ("Be {persona}.", "So far: {transcript}. Go on.")


def test_a_checkout_without_them_is_a_fault_not_another_user(tmp_path):
    with pytest.raises(EnvironmentFault, match=r"user_agent\.py"):
        wording(str(tmp_path))


async def test_after_the_last_round_nobody_is_asked():
    ann, upstream = user(say("ja"), say("nein"), rounds=1)
    assert await ann.reply("?") == f"{PREFIX}ja"
    assert await ann.reply("?") is None
    assert len(upstream.requests) == 1
    assert ann.record() == {"rounds_used": 1, "max_rounds": 1, "done_reached": False}


async def test_silence_ends_the_conversation():
    ann, _ = user(say(""))
    assert await ann.reply("?") is None
    assert ann.done


async def test_a_failing_model_is_asked_again_and_a_refusal_is_told(monkeypatch):
    monkeypatch.setattr("environments.claw.user.asyncio.sleep", no_pause)
    ann, _ = user(Transient("busy"), say("ja"))
    assert await ann.reply("?") == f"{PREFIX}ja"
    ann, _ = user(Refused("no key", 401))
    with pytest.raises(ModelError, match="simulated user's model refused: no key"):
        await ann.reply("?")
    ann, _ = user(*[Transient("busy")] * 6)
    with pytest.raises(ModelError, match="gave no reply: busy"):
        await ann.reply("?")


async def no_pause(seconds: float) -> None:
    pass
