"""A run in the forms that the benchmarks' own evaluators read, read here as they do it."""

import json
import re

import pytest
from support.screen import png

from environments.browser_use.task import BrowserTask
from rollout.protocol import Evidence, ScreenStep
from rollout.types import Image
from suites.online_mind2web.export import write as write_mind2web
from suites.webvoyager.export import write as write_webvoyager

ONE, TWO = Image(data=png(1)), Image(data=png(2))
TASK = BrowserTask(id="Google Map--2", prompt="Find\nit", reference_length=4)
TOLD = Evidence(
    task="Find\nit",
    steps=(
        ScreenStep(action="see the page", url="http://a/", screenshot=ONE),
        ScreenStep(action="click at (1, 1)", thought="it is there", url="http://b/", error="gone"),
        ScreenStep(action="go back", url="http://a/", screenshot=TWO),
    ),
    answer="Found [1]: it",
    start="http://a/",
)


def test_result_json_holds_the_actions_and_the_answer_as_one_more(tmp_path):
    write_mind2web(tmp_path, TASK, TOLD)
    place = tmp_path / TASK.id
    result = json.loads((place / "result.json").read_text())
    assert result["schema_version"] == "online-mind2web-v2"
    assert (result["task"], result["task_id"]) == ("Find\nit", "Google Map--2")
    assert (result["reference_length"], result["agent_final_answer"]) == (4, "Found [1]: it")
    steps = result["action_history"]
    assert [step["action"] for step in steps[:-1]] == ["see the page", "click at (1, 1)", "go back"]
    shown = [(place / "trajectory" / step["screenshot"]).read_bytes() for step in steps]
    assert shown == [ONE.data, ONE.data, TWO.data, TWO.data]
    assert len(list((place / "trajectory").iterdir())) == 2
    assert [step["action_status"] for step in steps[:3]] == ["success", "failed: gone", "success"]


@pytest.mark.parametrize("told", [TOLD, Evidence(task="Find it", start="http://a/")])
def test_interact_messages_are_read_as_webvoyager_reads_them(tmp_path, told):
    write_webvoyager(tmp_path, TASK, told)
    place = tmp_path / "taskGoogle Map--2"
    messages = json.loads((place / "interact_messages.json").read_text())
    found = re.search(r"Now given a task:(.+?)Please interact with", messages[1]["content"])
    assert found[1].strip() == "Find it"
    pictures = sorted(place.glob("*.png"))
    if told is TOLD:
        answer = re.search(r"ANSWER[; ]+\[?(.[^\]]*)\]?", messages[-1]["content"])
        assert answer[1].strip() == "Found (1): it"
        assert [path.read_bytes() for path in pictures] == [ONE.data, ONE.data, TWO.data]
    else:
        assert "Action: ANSWER" not in messages[-1]["content"]
        assert pictures == []
