"""The agent's own shell and file calls, as Bash, Read and Write."""

import json

from environments.claw.builtin import builtin_dispatches
from rollout.types import Call, ToolCall, Trace


def turn(index, messages, reply):
    return Call(
        index=index,
        dialect="chat",
        kind="main",
        request=json.dumps({"messages": messages}).encode(),
        reply=json.dumps({"choices": [{"message": reply}]}).encode(),
    )


def asked(*calls):
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for n, (name, arguments) in enumerate(calls)
        ],
    }


def test_known_calls_in_order_with_what_they_printed():
    said = asked(
        ("exec_command", '{"cmd": "ls"}'),
        ("mcp__tools__list_mail", "{}"),
        ("shell", '{"command": ["bash", "-lc", "false"]}'),
        ("Read", '{"file_path": "/workspace/a"}'),
        ("write", '{"path": "b", "content": "x"}'),
        ("bash", "no json"),
        ("update_plan", '{"command": "x"}'),
    )
    outputs = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": text}
        for n, text in enumerate(["a b", "{}", "Process exited with code 1", "text", "", "", ""])
    ]
    start = [{"role": "user", "content": "go"}]
    trace = Trace(
        calls=(
            turn(0, start, said),
            turn(1, [*start, said, *outputs], {"role": "assistant", "content": "done"}),
        ),
        tool_calls=(
            ToolCall(index=0, name="list_mail", arguments={}, status=200, reply={}, surface="mcp"),
        ),
    )
    found = builtin_dispatches(trace)
    assert [(call.index, call.name, call.arguments) for call in found] == [
        (1, "Bash", {"command": "ls"}),
        (2, "Bash", {"command": "false"}),
        (3, "Read", {"file_path": "/workspace/a"}),
        (4, "Write", {"file_path": "b", "content": "x"}),
    ]
    assert found[0].reply == {"exit_code": 0, "stdout": "a b", "stderr": ""}
    assert found[1].reply["exit_code"] == 1
    assert found[2].reply == {"content": "text"}
    assert {call.status for call in found} == {200}


def test_a_call_whose_output_nobody_saw_is_still_a_call():
    trace = Trace(
        calls=(turn(0, [{"role": "user", "content": "x"}], asked(("bash", '{"cmd": "w"}'))),)
    )
    assert [call.reply["stdout"] for call in builtin_dispatches(trace)] == [""]
