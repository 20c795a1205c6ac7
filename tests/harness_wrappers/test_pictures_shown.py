"""What a tool shows reaches the model, through every harness that can take pictures."""

import json

import pytest
from support.gateways import QUICK
from support.screen import Screen, screen_task

from rollout import pictures
from rollout.episode import Setup, run_episode
from rollout.errors import UsageError
from rollout.gateway.dialects import DIALECTS
from rollout.gateway.server import Gateway
from rollout.gateway.upstreams.reference import Reference
from rollout.harness import Harness
from rollout.plugins import load
from rollout.sandboxes.local import Local
from rollout.types import Outcome


class Watching(Reference):
    """Plays the reference solution and keeps what it was shown."""

    def __init__(self):
        self.asked = []

    async def complete(self, request):
        self.asked.append(request.body["messages"])
        return await super().complete(request)


async def run(harness, surface):
    upstream = Watching()
    async with Gateway(upstream, retry=QUICK) as gateway:
        setup = Setup(Screen(), harness, gateway, Local(), surface)
        return upstream, *await run_episode(setup, screen_task(), 0)


def shown(messages):
    return [
        pictures.digest_of(part["image_url"]["url"])
        for message in messages
        if isinstance(message.get("content"), list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def check(upstream, episode, trace):
    """Each picture that a tool showed was seen by the model; the records keep it once."""
    assert (episode.outcome, episode.reason) == (Outcome.PASSED, "")
    taken = [digest for call in trace.tool_calls for digest in call.images]
    assert len(taken) == len(set(taken)) == 3
    assert shown(upstream.asked[-1])[-3:] == taken
    assert set(trace.images) == set(taken)
    for call in trace.calls:
        assert b"iVBOR" not in call.request
        whole = json.loads(pictures.put_back(call.request, trace.images))
        assert b"sha256:" not in json.dumps(whole).encode()
        chat, _ = DIALECTS[call.dialect].to_chat(whole)
        assert shown(chat["messages"]) == shown(upstream.asked[call.index])


@pytest.mark.parametrize("surface", ["native", "mcp"])
async def test_react(surface):
    upstream, episode, trace = await run(load("harness_wrappers", "react", Harness)(), surface)
    check(upstream, episode, trace)
    tool, user = upstream.asked[1][-2:]
    assert tool["content"].endswith("\n[attachment 1]")
    assert [part["type"] for part in user["content"]] == ["text", "image_url"]


PROGRAMS = ("claude_code", "kimi_code", "openclaw:direct", "opencode")


@pytest.mark.parametrize(
    "name", ["codex", *(pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS)]
)
async def test_programs_over_mcp(name):
    name, _, preset = name.partition(":")
    harness = load("harness_wrappers", name, Harness)(preset=preset or "default")
    try:
        await harness.prepare()
    except UsageError as error:
        pytest.skip(str(error))
    check(*await run(harness, "mcp"))
