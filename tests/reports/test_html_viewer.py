"""What is told of an episode: the tree of its calls, its film strip, its shard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.recorded_runs import (
    HOSTILE,
    asked,
    call,
    episode,
    hostile_trace,
    png,
    screen_trace,
    write_run,
)

from reports.branches import links
from reports.film import frames
from reports.html import write_report
from reports.load import load_runs
from reports.shards import SHARD_BYTES, Pictures, Shards, script_json
from reports.viewer import detail
from rollout.types import Image, Trace

SYSTEM = {"role": "system", "content": "You are an agent."}
TASK = {"role": "user", "content": "Do it."}


def told(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_calls_that_append_are_one_branch() -> None:
    first = [SYSTEM, TASK]
    second = [*first, told("assistant", "a"), told("user", "go on")]
    found = links([call(0, first, {"content": "a"}), call(1, second, {"content": "b"})])
    assert [(link.branch, link.parent, link.shared) for link in found] == [(0, None, 0), (0, 0, 3)]
    assert [message["content"] for message in found[1].heard] == ["go on"]


def test_rewritten_history_branches_where_it_parts() -> None:
    first = [SYSTEM, TASK]
    second = [*first, told("assistant", "a"), told("user", "one")]
    rewritten = [*first, told("assistant", "a"), told("user", "two")]
    calls = [
        call(0, first, {"content": "a"}),
        call(1, second, {"content": "b"}),
        call(2, rewritten, {"content": "c"}),
    ]
    assert [(link.branch, link.shared) for link in links(calls)] == [(0, 0), (0, 3), (1, 3)]


def test_another_agent_or_a_summary_starts_over() -> None:
    calls = [
        call(0, [SYSTEM, TASK], {"content": "a"}),
        call(1, [told("system", "Summarise."), TASK], {"content": "s"}, kind="compaction"),
        call(2, [SYSTEM, told("user", "Summary: s")], {"content": "b"}),
    ]
    found = links(calls)
    assert [(link.branch, link.parent) for link in found] == [(0, None), (1, None), (2, None)]


def test_a_thought_that_is_not_sent_back_does_not_branch() -> None:
    first = [SYSTEM, TASK]
    second = [*first, told("assistant", "a"), told("user", "go on")]
    calls = [
        call(0, first, {"content": "a", "reasoning_content": "hm"}),
        call(1, second, {"content": "b"}),
    ]
    assert [link.branch for link in links(calls)] == [0, 0]


def test_unreadable_calls_are_kept_as_received() -> None:
    story = detail(episode("t", 0, False), hostile_trace(), lambda image: "")
    assert story["calls"][1]["said"] is None
    assert story["calls"][1]["raw"].startswith("</script>")
    assert story["calls"][0]["said"]["asks"][0]["arguments"] == "{bad json"


def test_tool_calls_belong_to_the_call_that_was_answered_before_them() -> None:
    story = detail(episode("t", 0, True), screen_trace(), lambda image: f"{image.digest}.png")
    assert [tool["call"] for tool in story["tools"]] == [0, 1, 2]
    assert story["prompt"] == "Buy it"


def test_film_shows_the_screen_before_each_action_and_the_last_one() -> None:
    trace = screen_trace()
    before, after = (tool.images[0] for tool in trace.tool_calls[:2])
    strip = frames(trace.tool_calls, {1: "the button"})
    assert [frame["picture"] for frame in strip] == ["", before, after, after]
    assert strip[1]["points"] == [{"x": 0.25, "y": 0.5}]
    assert strip[1]["thought"] == "the button"
    assert strip[1]["url"] == "http://shop.localhost/0"
    assert strip[1]["action"] == "click at (0.25, 0.50)"
    assert strip[2]["action"] == "drag at (0.10, 0.20) to (0.80, 0.90)"
    assert len(strip[2]["points"]) == 2


def test_thought_in_a_reply_of_json_is_told_alone() -> None:
    said = {"content": '{"thought": "I look", "action": {"name": "click"}}'}
    trace = screen_trace()
    calls = (call(0, [TASK], said), *trace.calls[1:])
    story = detail(
        episode("t", 0, True), msgspec.structs.replace(trace, calls=calls), lambda image: "p.png"
    )
    assert [frame.get("thought") for frame in story["film"][:2]] == ["I look", "thought 1"]


def test_episode_without_pictures_has_no_film() -> None:
    assert frames(hostile_trace().tool_calls, {}) == []


def test_world_is_told_by_what_is_not_empty() -> None:
    world = {"audit": {"mail": {"calls": [1, 2], "sent": ["a"], "drafts": []}}, "now": "today"}
    story = detail(episode("t", 0, True), Trace(world=world), lambda image: "")
    assert story["changes"] == [{"where": "mail", "what": "sent", "value": ["a"]}]
    assert story["world"]["audit"] == {"mail": {"sent": ["a"], "drafts": []}}


def test_pictures_in_messages_are_kept_and_named() -> None:
    url = "data:image/png;base64,aGVsbG8="
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "look"}]
    kept: list[Image] = []

    def keep(image: Image) -> str:
        kept.append(image)
        return "p.png"

    trace = Trace(calls=(call(0, [{"role": "user", "content": content}], {"content": "a"}),))
    heard = detail(episode("t", 0, True), trace, keep)["calls"][0]["heard"]
    assert heard == [{"role": "user", "text": "look", "pictures": ["p.png"]}]
    assert kept == [Image(data=b"hello")]


def test_pictures_are_written_once_by_digest(tmp_path: Path) -> None:
    pictures, image = Pictures(tmp_path / "images"), png(10)
    names = {pictures.keep(image), pictures.keep(image)}
    assert names == {f"{image.digest}.png"}
    assert (tmp_path / "images" / names.pop()).read_bytes() == image.data
    assert pictures.keep(Image(data=b"<svg onload=alert(1)>", media_type="image/svg+xml")) == ""


@pytest.mark.parametrize("text", [HOSTILE, "\ud83d", "\u2028"])
def test_json_in_a_script_can_not_end_it(text: str) -> None:
    written = script_json({"a": text})
    assert "<" not in written
    assert "\u2028" not in written
    assert json.loads(written)["a"] == text.encode(errors="backslashreplace").decode()


def shard(path: Path) -> tuple[dict[str, Any], list[str]]:
    """What a shard's script hands over, read as the page would."""
    arguments = path.read_text(encoding="utf-8").removeprefix("anyharness.shard(").rstrip(");\n")
    _, episodes, texts = json.loads(f"[{arguments}]")
    return episodes, texts


def test_long_texts_are_kept_once_in_a_shard(tmp_path: Path) -> None:
    trace = Trace(calls=(call(0, [told("system", "x" * 1000), TASK], {"content": "a"}),))
    with Shards(tmp_path / "episodes") as shards:
        for n in range(3):
            story = detail(episode("t", n, True), trace, lambda image: "")
            assert shards.add(n, story) == 0
    episodes, texts = shard(tmp_path / "episodes" / "0.js")
    assert texts == ["x" * 1000]
    assert [episodes[str(n)]["calls"][0]["heard"][0]["text"] for n in range(3)] == [0, 0, 0]


def test_shards_close_when_they_are_full(tmp_path: Path) -> None:
    stale = tmp_path / "episodes" / "9.js"
    stale.parent.mkdir()
    stale.write_text("old")
    with Shards(stale.parent) as shards:
        places = [shards.add(n, {"log": "y" * (SHARD_BYTES // 2)}) for n in range(5)]
    assert places == [0, 0, 1, 1, 2]
    assert sorted(path.name for path in stale.parent.iterdir()) == ["0.js", "1.js", "2.js"]


def test_tool_arguments_that_are_json_are_shown_as_such() -> None:
    said = {"content": None, "tool_calls": [asked("add", '{"text": "milk"}')]}
    story = detail(episode("t", 0, True), Trace(calls=(call(0, [TASK], said),)), lambda image: "")
    assert story["calls"][0]["said"]["asks"] == [{"name": "add", "arguments": {"text": "milk"}}]


def test_run_without_an_episode_has_a_page(tmp_path: Path) -> None:
    with load_runs([write_run(tmp_path / "run", [])]) as runs:
        file = write_report(runs, [], tmp_path / "report")
    assert "0 episodes of 1 runs" in file.read_text(encoding="utf-8")
