"""Every harness in a real browser: two tasks, played by the reference policy."""

import pytest
from support.gateways import QUICK

from environments.browser_use.environment import BrowserUse
from rollout.episode import Setup, run_episode
from rollout.errors import UsageError
from rollout.gateway.server import Gateway
from rollout.gateway.upstreams.reference import Reference
from rollout.harness import Harness
from rollout.plugins import load
from rollout.sandboxes.local import Local
from rollout.types import Outcome
from suites.online_mind2web.builtin import builtin_tasks

FAST = ("react/native", "react/mcp", "molmoweb/native", "molmoweb:unit/native")
SLOW = ("codex", "claude_code", "openclaw:direct", "kimi_code", "opencode")
CELLS = [*FAST, *(pytest.param(f"{name}/mcp", marks=pytest.mark.slow) for name in SLOW)]


@pytest.fixture(scope="module")
def tasks():
    """The shortest easy one, and the shortest of medium level."""
    known = sorted(builtin_tasks(), key=lambda task: task.reference_length)
    return [
        next(task for task in known if task.difficulty == level) for level in ("easy", "medium")
    ]


async def prepared(thing):
    try:
        await thing.prepare()
    except UsageError as error:
        pytest.skip(str(error))
    return thing


@pytest.mark.parametrize("cell", CELLS)
async def test_the_reference_policy_passes(cell, tasks):
    spec, _, surface = cell.partition("/")
    name, _, preset = spec.partition(":")
    harness = await prepared(load("harness_wrappers", name, Harness)(preset=preset or "default"))
    environment = await prepared(BrowserUse())
    try:
        async with Gateway(Reference(), retry=QUICK) as gateway:
            setup = Setup(environment, harness, gateway, Local(), surface)
            for task in tasks:
                episode, trace = await run_episode(setup, task, 0)
                assert (task.id, episode.outcome, episode.reason) == (task.id, Outcome.PASSED, "")
                shown = {digest for call in trace.tool_calls for digest in call.images}
                assert shown
                assert shown <= trace.images.keys()
                assert all(b"iVBORw0KGgo" not in call.request for call in trace.calls)
    finally:
        await environment.close()
