"""Functions that models called, out of the replies in each dialect."""

import pytest
from support.recorded import model_call

from reports.functions import function_calls, own_calls
from rollout.types import Call, Trace


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_names_arguments_and_offers(dialect: str) -> None:
    call = model_call(
        ("Bash", '{"command": "ls"}'), ("nope", "{}"), offered=["Bash"], dialect=dialect
    )
    shell, unknown = function_calls([call])
    assert (shell.name, shell.parses, shell.exists, shell.shell) == ("Bash", True, True, True)
    assert (unknown.parses, unknown.exists, unknown.shell) == (True, False, False)


@pytest.mark.parametrize(
    ("arguments", "parses"),
    [("", True), ("{}", True), ('{"a"', False), ("[1]", False), ("7", False)],
)
def test_arguments_must_be_an_object(arguments: str, parses: bool) -> None:
    (found,) = function_calls([model_call(("f", arguments), offered=["f"])])
    assert found.parses is parses


def test_namespaces_custom_tools_and_built_in_ones() -> None:
    call = Call(
        index=0,
        dialect="responses",
        kind="main",
        request=b'{"tools": [{"type": "namespace", "name": "mcp__s__", "tools": [{"name": "add"}]},'
        b'{"type": "custom", "name": "apply_patch"}, {"type": "local_shell"}]}',
        reply=b'{"output": [{"type": "function_call", "name": "add", "arguments": "{}"},'
        b'{"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"},'
        b'{"type": "local_shell_call"}, {"type": "message"}]}',
    )
    found = list(function_calls([call]))
    assert [each.name for each in found] == ["add", "apply_patch", "local_shell"]
    assert all(each.parses and each.exists for each in found)


@pytest.mark.parametrize(
    "reply", [b"", b"[]", b'{"choices": 3}', b'{"choices": [{"message": null}]}']
)
def test_nonsense_calls_nothing(reply: bytes) -> None:
    assert (
        list(
            function_calls([Call(index=0, dialect="chat", kind="main", request=b"no", reply=reply)])
        )
        == []
    )


def test_requests_sent_again_and_calls_that_are_not_the_agents_own() -> None:
    calls = (
        model_call(n=0),
        model_call(n=0),
        model_call(n=1, kind="compaction"),
        model_call(n=2, status=500),
        model_call(n=3, kind="subagent"),
    )
    assert own_calls(Trace(calls=calls)) == [calls[1], calls[4]]
