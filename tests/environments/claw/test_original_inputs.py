"""From recorded calls to the conversation that claw-eval's graders read."""

import json
from typing import Any

import pytest

from environments.claw.original.inputs import dispatches, messages
from rollout.types import Call, ToolCall, Trace

SENT = ToolCall(
    index=0,
    name="mail_send",
    arguments={"to": "ann"},
    status=200,
    reply={"id": "已"},
    surface="mcp",
)
PROMPT = {"role": "user", "content": "Write to Ann."}
REMINDER = {"role": "user", "content": "<system-reminder>Plan first.</system-reminder>"}
USER = {"role": "user", "content": "[user_agent]\nTo both."}


def use(name: str, arguments: str, id: str = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(text: str | None, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": text,
        **({"tool_calls": [*calls]} if calls else {}),
        **more,
    }


def call(history: list[Any], said: dict[str, Any], kind: str = "main", status: int = 200) -> Call:
    return Call(
        index=0,
        dialect="chat",
        kind=kind,
        status=status,
        request=json.dumps({"messages": history}).encode(),
        reply=json.dumps({"choices": [{"message": said}]}).encode(),
    )


def tool(content: str, id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def read(*calls: Call, answer: str = "", tools: tuple[ToolCall, ...] = (SENT,)) -> list[Any]:
    """Roles, texts, and blocks of tools, in short."""
    trace = Trace(calls=calls, tool_calls=tools, answer=answer)
    return [(m["role"], *map(short, m["content"])) for m in messages(trace, "Write to Ann.", {})]


def short(block: dict[str, Any]) -> Any:
    if block["type"] == "text":
        return block["text"]
    if block["type"] == "tool_use":
        return block["name"], block["input"]
    return block["tool_use_id"], block["content"][0]["text"], block["is_error"]


ASKED = assistant("I write.", use("mcp__desk__mail_send", '{"to": "ann"}'))
STEPS = [
    ("user", "Write to Ann."),
    ("assistant", "I write.", ("mail_send", {"to": "ann"})),
    ("user", ("call_0", '{"id": "已"}', False)),
    ("assistant", "Done."),
]


def test_a_tasks_tool_has_its_own_name_and_the_services_reply() -> None:
    first = call([PROMPT], ASKED)
    second = call([PROMPT, ASKED, tool("Wall time: 0.1 s\n...")], assistant("Done."))
    assert read(first, second, answer="Done.") == STEPS


def test_ids_that_the_harness_changed_do_not_matter() -> None:
    changed = assistant("I write.", use("mcp__desk__mail_send", '{"to": "ann"}', "z9"))
    second = call([PROMPT, changed, tool("sent", "z9")], assistant("Done."))
    assert read(call([PROMPT], ASKED), second, answer="Done.") == STEPS


def test_what_is_not_the_agents_own_conversation_is_left_out() -> None:
    first = call([PROMPT], ASKED)
    second = call([PROMPT, ASKED, tool("sent"), REMINDER], assistant("Done."))
    title = call([PROMPT], assistant("A title"), "side")
    helper = call([PROMPT], assistant("I help."), "subagent")
    summary = call([PROMPT], assistant("So far ..."), "compaction")
    refused = call([PROMPT], assistant("no"), status=400)
    found = read(title, first, helper, refused, summary, second, summary, answer="Done.")
    assert found == STEPS


def test_what_was_said_before_a_compaction_stays() -> None:
    first = call([PROMPT], ASKED)
    compacted = [PROMPT, {"role": "user", "content": "Summary: a mail was sent."}]
    found = read(first, call(compacted, assistant("Done.")), answer="Done.")
    assert found == [STEPS[0], STEPS[1], STEPS[3]]


def test_a_reply_that_got_lost_counts_once() -> None:
    lost, again = call([PROMPT], assistant("Hm.")), call([PROMPT], assistant("Done."))
    assert read(lost, again, answer="Done.", tools=()) == [STEPS[0], STEPS[3]]


def test_the_simulated_users_words_are_kept() -> None:
    question = assistant("To whom?")
    second = call([PROMPT, question, USER], assistant("Done."))
    assert read(call([PROMPT], question), second, answer="Done.", tools=()) == [
        STEPS[0],
        ("assistant", "To whom?"),
        ("user", "[user_agent]\nTo both."),
        STEPS[3],
    ]


def test_the_harnesss_own_tools_are_shown_as_it_told_them() -> None:
    asked = assistant(None, use("exec_command", '{"cmd": "ls"}'))
    second = call([PROMPT, asked, tool("a.txt")], assistant("Done."))
    assert read(call([PROMPT], asked), second, tools=())[1:3] == [
        ("assistant", ("exec_command", {"cmd": "ls"})),
        ("user", ("c1", "a.txt", False)),
    ]


def test_each_dispatch_answers_one_call_the_one_with_its_arguments_first() -> None:
    other = ToolCall(
        index=1,
        name="mail_send",
        arguments={"to": "bob"},
        status=500,
        reply={"error": "x"},
        surface="mcp",
    )
    bob, ann = use("mail_send", '{"to": "bob"}', "b"), use("mail_send", '{"to": "ann"}', "a")
    asked = assistant("", bob, ann)
    second = call([PROMPT, asked, tool("", "b"), tool("", "a")], assistant("Done."))
    found = read(call([PROMPT], asked), second, tools=(SENT, other))
    assert found[2] == (
        "user",
        ("call_1", '{"error": "x"}', True),
        ("call_0", '{"id": "已"}', False),
    )


@pytest.mark.parametrize(
    ("said", "answer", "last"),
    [
        (assistant("Checked.\n\nDone."), "Done.", ["Checked.\n\nDone."]),
        (assistant("Done"), "Done, really.", ["Done, really."]),
        (assistant("Done."), "", ["Done."]),
        (ASKED, "Out of turns.", ["I write.", "Out of turns."]),
    ],
)
def test_the_harnesss_answer_is_the_final_text(said, answer, last) -> None:
    found = read(call([PROMPT], said), answer=answer)
    assert [text[1] for text in found[1:]] == last


def test_no_calls_and_calls_that_make_no_sense() -> None:
    odd = Call(index=0, dialect="responses", kind="main", request=b"[]", reply=b"null")
    assert read(odd, answer="Done.", tools=()) == [STEPS[0], STEPS[3]]


def test_reasoning_and_documents(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("Dear Ann")
    trace = Trace(calls=(call([PROMPT], assistant("Done.", reasoning_content="Hm.")),))
    user, said = messages(trace, "Write.", {"a.txt": str(tmp_path / "a.txt")})
    assert [b["text"] for b in user["content"]] == [
        "Write.",
        "[attached document: a.txt]\nDear Ann",
    ]
    assert said["reasoning_content"] == "Hm."


def test_arguments_that_are_no_object_become_one() -> None:
    odd = [
        ToolCall(index=n, name="x", arguments=sent, status=422, reply=None, surface="skill")
        for n, sent in enumerate(([1], None, {"a": 1}))
    ]
    assert [d["request_body"] for d in dispatches(odd)] == [{"arguments": [1]}, {}, {"a": 1}]
