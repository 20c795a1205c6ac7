"""What a judge says stands beside the computed measures."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from support.recorded import model_call, record
from support.scripted_server import ScriptedServer, text

from reports.__main__ import main
from reports.catalogue import Report
from reports.judged import JUDGED, ask_judge
from reports.load import load_runs
from rollout.errors import JudgeError
from rollout.judge import Judge
from rollout.types import Trace


class Scripted(Judge):
    """Likes plans, and has nothing to say about verification."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def reply(self, messages: list[dict[str, Any]], repeat: int = 0) -> str:
        self.asked.append(messages[0]["content"])
        if "checked its own work" in self.asked[-1]:
            raise JudgeError("asleep")
        return '{"score": 0.75, "reasoning": "fine"}'


TRACE = Trace(
    calls=(model_call(("mail_send", '{"to": "ann"}'), offered=["mail_send"]),), answer="Sent it."
)


def test_verdicts_are_columns_and_measures(tmp_path: Path) -> None:
    folder = record(tmp_path / "a", {"t": ["passed", "infra_error:model"]}, {"t#0": TRACE})
    judge = Scripted()
    with load_runs([folder]) as runs:
        verdicts, missing = asyncio.run(ask_judge(runs, judge))
        report = Report(runs, (), lambda found: found.judged(verdicts, JUDGED))
        found = report.table("behaviour").frame.iloc[0]
    assert missing == 1
    assert found.judged_plan_quality == 0.75
    assert math.isnan(found.judged_self_verification)
    assert len(judge.asked) == 2
    for part in ("USER: go 0", 'AGENT CALLS mail_send: {"to": "ann"}', "FINAL ANSWER: Sent it."):
        assert part in judge.asked[0]


async def test_from_the_command_line_and_again_from_the_cache(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Another thread: both call asyncio.run.
    folder = await asyncio.to_thread(record, tmp_path / "a", {"t": ["passed"]}, {"t#0": TRACE})
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
    async with ScriptedServer() as server:
        server.default = text('{"score": 0.5, "reasoning": "so so"}')
        arguments = [str(folder), "--table", "measures", "--judge-cache", str(tmp_path / "cache")]
        arguments += ["--judge", "openai:scripted", "--judge-base-url", server.url]
        for _ in range(2):
            await asyncio.to_thread(main, arguments)
            assert "plan quality (judge)" in capsys.readouterr().out
        assert len(server.requests) == 2
