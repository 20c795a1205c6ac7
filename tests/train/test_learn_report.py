"""The report of `make learn`, from runs that are made up."""

from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from rollout.store import EpisodeStore
from rollout.types import Episode, Grade, Outcome, Trace
from train.learn_report import HARNESSES, Arm, paired_rise, write_report

ARMS = (Arm("react", "react", "react_text"), Arm("both", "react,react_text", ""))


async def attempts(folder: Path, passed: int) -> None:
    """Ten drills, three attempts each; all of the first `passed` drills'."""
    folder.mkdir(parents=True)
    with EpisodeStore.create(folder) as store:
        for number in range(10):
            right = number < passed
            for attempt in range(3):
                name = f"{('mail', 'order')[number % 2]}-held-out-{number:05d}"
                episode = Episode(
                    id=f"{name}#{attempt}",
                    task_id=name,
                    attempt=attempt,
                    outcome=Outcome.PASSED if right else Outcome.FAILED,
                    reason="" if right else "not met: gmail.sent_messages has the right to",
                    grade=Grade(score=float(right), passed=right),
                    calls=3,
                )
                await store.append(episode, Trace())


async def test_tables_and_curve(tmp_path: Path) -> None:
    (tmp_path / "figures.json").write_text('{"minutes": 41.2, "parameters": 209536}')
    for arm in ARMS:
        for seed in (0, 1):
            run = tmp_path / f"{arm.name}-{seed}"
            for harness in HARNESSES:
                await attempts(run / "evals" / "000000" / harness, 3)
                await attempts(run / "evals" / "000040" / harness, 6 + seed)
            lines = [{"step": n, "reward": n / 40} for n in range(40)] + [{"step": 40}]
            text = "\n".join(msgspec.json.encode(line).decode() for line in lines)
            (run / "metrics.jsonl").write_text(text + "\n")
            (run / "settings.json").write_text('{"batch": 16, "group": 8}')
    write_report(tmp_path, tmp_path / "docs", ARMS, (0, 1))
    told = (tmp_path / "docs" / "learning.md").read_text()
    assert "209,536 parameters" in told
    assert "41 minutes" in told
    assert "16\ndrills x 8 attempts" in told
    assert "| seed 1 | 30% (" in told
    assert " | +40 (" in told
    assert "| made it with a wrong field | 70% | 35% |" in told
    assert "| nothing (SFT alone) | 30%" in told
    assert "| react,react_text | 65% (60%, 70%); +35 (" in told
    ElementTree.parse(tmp_path / "docs" / "learning.svg")


def test_a_rise_is_of_the_same_tasks() -> None:
    before, after = np.array([0.0, 0, 0, 1] * 10), np.array([0.0, 1, 0, 1] * 10)
    rise, low, high = paired_rise(before, after)
    assert rise == pytest.approx(0.25)
    assert 0.1 < low < rise < high < 0.41
    assert paired_rise(before, before) == (0, 0, 0)
