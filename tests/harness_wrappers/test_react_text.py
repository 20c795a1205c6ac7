"""The text form of ReAct: what is shown, what is read, what ends it."""

from typing import Any

from rollout.episode import run_episode
from rollout.gateway.upstream import ModelReply, ModelRequest, Upstream
from rollout.types import Outcome, Task
from suites.command.options import parse
from suites.command.setup import open_setup
from suites.office_drills import OfficeDrills
from suites.office_drills.drills import drill


class Says(Upstream):
    """Says one thing after the other."""

    model = label = "says"

    def __init__(self, *texts: str, finish: str = "stop") -> None:
        self.texts = list(texts)
        self.finish = finish
        self.seen: list[Any] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.seen.append(request.body)
        message = {"role": "assistant", "content": self.texts.pop(0)}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        body = {"id": "x", "object": "chat.completion", "created": 0, "model": "says"}
        return ModelReply(body=body | {"choices": [choice]}, finish=self.finish)


async def play(policy: Says, task: Task) -> Any:
    suite = OfficeDrills()
    options = parse(suite, ["--harness", "react_text", "--sandbox", "local"])
    async with open_setup(suite, options, policy=policy) as setup:
        return await run_episode(setup, task, 0)


async def test_an_action_is_carried_out_and_observed() -> None:
    task = drill("train", "mail", 0)
    assert task.reference is not None
    search = task.reference.steps[0]
    said = f'I look.\nAction: {search.call} {{"query": "{search.arguments["query"]}"}}'
    policy = Says(said, "Nobody mailed.")
    episode, trace = await play(policy, task)
    assert episode.outcome is Outcome.FAILED
    assert [call.name for call in trace.tool_calls] == ["contacts_search"]
    assert trace.answer == "Nobody mailed."
    system, user, assistant, observation = policy.seen[1]["messages"]
    assert "contacts_search: Find people" in system["content"]
    assert "tools" not in policy.seen[0]
    assert (user["content"], assistant["content"]) == (task.prompt, said)
    assert observation["role"] == "user"
    assert observation["content"].startswith('Observation: {"contacts":[')


async def test_arguments_that_are_no_json_are_told() -> None:
    policy = Says("Action: contacts_search {query}", "Well.")
    _, trace = await play(policy, drill("train", "mail", 0))
    assert "not valid JSON" in policy.seen[1]["messages"][-1]["content"]
    assert not trace.tool_calls


async def test_a_cut_reply_is_no_answer() -> None:
    episode, _ = await play(Says("I think", finish="length"), drill("train", "mail", 0))
    assert episode.limit == "the last reply ended by length"


async def test_turns_are_limited() -> None:
    policy = Says(*["Action: contacts_search {}"] * 9)
    episode, _ = await play(policy, drill("train", "mail", 0))
    assert episode.limit == "no answer after 6 turns"


async def test_the_reference_plays_in_it() -> None:
    suite = OfficeDrills()
    options = parse(suite, ["--harness", "react_text", "--sandbox", "local"])
    async with open_setup(suite, options) as setup:
        for family in ("mail", "meeting"):
            episode, _ = await run_episode(setup, drill("train", family, 1), 0)
            assert episode.outcome is Outcome.PASSED
