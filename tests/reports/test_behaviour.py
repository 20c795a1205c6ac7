"""Each measure on attempts that were made up for it."""

import math
from typing import Any

import pytest
from support.recorded import tool

from reports.behaviour import (
    MEASURES,
    Attempt,
    error_recovery,
    failed_calls,
    format_robustness,
    plan_completion,
    self_verification,
    shell_share,
    shell_share_passed,
    step_efficiency,
    tool_coverage,
    useless_loops,
)
from reports.functions import FunctionCall


def made(*tools: Any, passed: bool = True, **more: Any) -> Attempt:
    return Attempt(
        **{"passed": passed, "turns": 1, "tokens": 10, "functions": (), "tools": tools, **more}
    )


SENT = tool(
    "mail_send", {"to": "ann@x.example", "body": "hello"}, {"status": "sent", "message_id": "m17"}
)


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ((), math.nan),
        ((tool("mail_list"),), math.nan),
        ((SENT,), 0.0),
        ((tool("mail_list", reply=[{"to": "ann@x.example"}]), SENT), 0.0),
        ((SENT, tool("mail_list", reply=[{"to": "ann@x.example"}])), 1.0),
        ((SENT, tool("mail_get", {"id": "m17"})), 1.0),
        ((SENT, tool("mail_get", {"id": "m99"}, {"to": "bob"})), 0.0),
        ((SENT, tool("crm_get", {"id": "m17"})), 0.0),
        ((SENT, tool("mail_get", {"id": "m17"}, status=500)), 0.0),
        ((SENT, tool("mail_delete", {"id": "m18x"}), tool("mail_get", {"id": "m17"})), 0.5),
        ((tool("mail_send", {"to": "ann"}, status=422), tool("mail_list", reply="ann")), math.nan),
    ],
)
def test_self_verification(tools: tuple[Any, ...], expected: float) -> None:
    assert self_verification(made(*tools)) == pytest.approx(expected, nan_ok=True)


def test_a_tools_own_service_comes_before_its_name() -> None:
    read = tool("lookup_person", {"id": "m17"})
    assert self_verification(made(SENT, read)) == 0
    services = {"mail_send": "office", "lookup_person": "office"}
    assert self_verification(made(SENT, read, services=services)) == 1


def test_what_is_compared_with_the_reference_solution() -> None:
    steps = ("mail_list", "mail_get", "mail_get", "crm_update")
    attempt = made(
        tool("mail_list"),
        tool("mail_get"),
        tool("mail_get", status=404),
        tool("mail_list"),
        tool("crm_update", status=500),
        steps=steps,
    )
    assert tool_coverage(attempt) == 0.5
    assert plan_completion(attempt) == 0.5
    assert step_efficiency(attempt) == 4 / 5
    assert math.isnan(step_efficiency(made(tool("a_b"), steps=steps, passed=False)))
    assert all(math.isnan(f(made(SENT))) for f in (tool_coverage, plan_completion, step_efficiency))
    assert math.isnan(plan_completion(made(SENT, steps=("mail_send",))))


def test_calls_that_parse_and_exist() -> None:
    good = FunctionCall("exec_command", parses=True, exists=True)
    broken = FunctionCall("mail_send", parses=False, exists=True)
    unknown = FunctionCall("mail_burn", parses=True, exists=False)
    attempt = made(functions=(good, good, broken, unknown))
    assert format_robustness(attempt) == 0.5
    assert shell_share(attempt) == 0.5
    assert shell_share_passed(attempt) == 0.5
    assert math.isnan(shell_share_passed(made(functions=(good,), passed=False)))
    assert error_recovery(attempt) == 1
    assert error_recovery(made(functions=(broken,), passed=False)) == 0
    assert math.isnan(error_recovery(made(functions=(good,))))


def test_failed_calls_and_what_came_after_them() -> None:
    tools = (tool("mail_send", status=422), SENT)
    assert failed_calls(made(*tools)) == 0.5
    assert error_recovery(made(*tools)) == 1
    assert error_recovery(made(*tools, passed=False)) == 0
    assert math.isnan(failed_calls(made()))


def test_loops_are_repeats_with_nothing_written_in_between() -> None:
    look = tool("mail_list", {"n": 1}, ["a"])
    assert useless_loops(made(look, look, look)) == pytest.approx(2 / 3)
    assert useless_loops(made(look, SENT, look)) == 0
    assert useless_loops(made(look, tool("mail_list", {"n": 1}, ["a", "b"]))) == 0
    assert useless_loops(made(SENT, SENT, look)) == pytest.approx(1 / 3)


def test_each_measure_says_what_it_is() -> None:
    assert len({measure.name for measure in MEASURES}) == len(MEASURES)
    for measure in MEASURES:
        assert measure.definition.endswith("."), measure.name
        assert "\n" not in measure.definition
