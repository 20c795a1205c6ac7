"""Grading an attempt from its records: just after it ran, or at any later time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from rollout.contract import returned
from rollout.environment import Environment
from rollout.errors import Blocked, EnvironmentFault, RolloutError, boundary
from rollout.judge import Judge
from rollout.text import one_line
from rollout.types import Episode, Grade, Outcome, Task, Trace

__all__ = ["AttemptResult", "grade_again", "grade_trace"]


@dataclass(frozen=True)
class AttemptResult:
    """How an attempt ended, and why. The fields are as those of `Episode`."""

    outcome: Outcome
    grade: Grade | None = None
    cause: str = ""
    reason: str = ""
    detail: str = ""

    @classmethod
    def ungraded(cls, outcome: Outcome, error: RolloutError) -> AttemptResult:
        """The result of an attempt that an error kept from a grade."""
        return cls(outcome, cause=error.cause, reason=str(error), detail=error.detail)

    def limited(self, timed_out: float, limit: str) -> AttemptResult:
        """The result where limits ended the attempt: a timeout fails it, others only say so.

        The arguments are `Episode.timed_out` and `Episode.limit`; the grade stays in any case.
        """
        if not self.outcome.graded:
            return self
        if timed_out:
            reason = f"out of time ({timed_out:.0f} s)"
            return AttemptResult(Outcome.FAILED, self.grade, cause="policy", reason=reason)
        if not limit:
            return self
        return replace(self, cause="policy", reason="; ".join(filter(None, (limit, self.reason))))


async def grade_trace(
    environment: Environment, task: Task, trace: Trace, judge: Judge | None = None
) -> AttemptResult:
    """Grade an attempt from its records: just after it ran, or years later.

    What fails here, judge or grader, is not run again: its records wait for a result.
    """
    judge = judge.metered() if judge else None
    try:
        with boundary(EnvironmentFault, "grading"):
            grade = _sound(await environment.grade(task, trace, judge))
    except Blocked as error:
        return AttemptResult.ungraded(Outcome.BLOCKED, error)
    except RolloutError as error:
        return AttemptResult.ungraded(Outcome.JUDGE_ERROR, error)
    if judge and (judge.spent.calls or judge.spent.cached):
        evidence = {**grade.evidence, "judge_spent": msgspec.to_builtins(judge.spent)}
        grade = msgspec.structs.replace(grade, evidence=evidence)
    outcome = Outcome.PASSED if grade.passed else Outcome.FAILED
    return AttemptResult(outcome, grade, reason="; ".join(grade.notes))


def _sound(grade: Grade) -> Grade:
    """The grade. Raises TypeError or ValueError for what is none."""
    returned(grade, Grade, "grade()")
    bare = msgspec.structs.replace(grade, evidence={})
    msgspec.convert(msgspec.to_builtins(bare), Grade)
    if not 0.0 <= grade.score <= 1.0:
        raise ValueError(f"the score {grade.score!r} is not in [0, 1]")
    return grade


async def grade_again(
    environment: Environment, task: Task, episode: Episode, trace: Trace, judge: Judge | None = None
) -> Episode:
    """A recorded episode with the verdict of now; its limits hold as they did then."""
    result = await grade_trace(environment, task, trace, judge)
    result = result.limited(episode.timed_out, episode.limit)
    return msgspec.structs.replace(
        episode,
        outcome=result.outcome,
        grade=result.grade,
        cause=result.cause,
        reason=one_line(result.reason),
        detail=result.detail,
    )
