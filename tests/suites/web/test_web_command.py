"""`python -m suites.online_mind2web` as users call it: a run in a real browser, then its export."""

import json

import pytest

from environments.browser_use.chromium import find
from environments.browser_use.task import BrowserTask
from environments.browser_use.tools import TOOLS
from rollout.errors import EnvironmentFault, UsageError
from rollout.types import Solution, Step
from suites.browser import run
from suites.online_mind2web import OnlineMind2Web
from suites.online_mind2web.export import write as write_mind2web
from suites.webvoyager import WebVoyager
from suites.webvoyager.export import write as write_webvoyager

WRITE = {OnlineMind2Web: write_mind2web, WebVoyager: write_webvoyager}

VERIFY = """\
def verify_look(state, answer):
    return [("answered", answer == "A shop."), ("site", "shop" in state)]
"""


@pytest.fixture
def suite(request, tmp_path, monkeypatch):
    try:
        find()
    except (EnvironmentFault, UsageError) as error:
        pytest.skip(str(error))
    verifier = tmp_path / "verify.py"
    verifier.write_text(VERIFY)
    steps = (
        Step(call="browser_scroll", arguments={"delta_y": 0.5}),
        Step(
            call="browser_click",
            arguments={"x": "{{at:css=a|x}}", "y": "{{at:css=a|y}}"},
        ),
    )
    task = BrowserTask(
        id="look",
        prompt="What is it?",
        tools=TOOLS,
        start="shop:/",
        sites=("shop",),
        verifier=str(verifier),
        reference=Solution(name="reference", steps=steps, answer="A shop."),
        reference_length=2,
    )
    monkeypatch.setattr(request.param, "built_in", lambda self: [task])
    return request.param


def command(kind, *argv):
    try:
        run(kind(), WRITE[kind], [str(word) for word in argv])
    except SystemExit as ended:
        return ended.code
    return 0


@pytest.mark.parametrize("suite", WRITE, indirect=True)
def test_a_run_and_its_export(suite, tmp_path, capsys):
    out, packages = tmp_path / "run", tmp_path / "packages"
    argv = ("--attempts", 2, "--sandbox", "local", "--quiet", "--json", "--out", out)
    assert command(suite, *argv) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["harness"], result["outcomes"]) == ("molmoweb", {"passed": 2})
    assert command(suite, "export", out, "--out", packages) == 0
    assert f"2 attempts written to {packages}" in capsys.readouterr().out
    for attempt in ("attempt-0", "attempt-1"):
        if suite is OnlineMind2Web:
            written = json.loads((packages / attempt / "look/result.json").read_text())
            actions = [step["action"] for step in written["action_history"]]
            assert (len(actions), actions[-1]) == (4, "answer: A shop.")
            thoughts = [step["thought"] for step in written["action_history"]]
            assert "Step 1 of 3: browser_scroll" in thoughts
            last = (
                packages / attempt / "look/trajectory" / written["action_history"][-1]["screenshot"]
            )
        else:
            last = packages / attempt / "tasklook/screenshot3.png"
            said = json.loads(last.with_name("interact_messages.json").read_text())[-1]["content"]
            assert said == "Action: ANSWER; [A shop.]"
        assert last.read_bytes().startswith(b"\x89PNG")
    assert command(suite, "export", out, "--out", packages) == 2
    assert "not empty" in capsys.readouterr().err
