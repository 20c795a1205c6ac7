"""Reading verdicts out of a judge's prose, strictly.

What others read as a success, or miss: `Status: unsuccessful`, `Status: failure - no success`,
`**Status**: success`, a status that is only spoken of in the thoughts, `NOT SUCCESS`, no verdict at all.
Here a reply either holds a verdict in the form that was asked for, or raises ValueError and is asked for
again; nothing is ever a success by default.
"""

from __future__ import annotations

import re

__all__ = ["coverage", "image_score", "status", "success_word", "thoughts"]

SUCCESS = r"success(?:ful)?"
FAILURE = r"(?:not[\s_-]+success(?:ful)?|unsuccessful|failure|failed|fail)"
CHOICE = r"(?!\W*(?:\bor\b|/|\|)\W*(?:not\b|un)?(?:success|fail))"
"""No verdict: the choice itself, `"success" or "failure"`, repeated from the question."""

STATUS = rf"\bstatus\W*[:=：]\W*(?:(?P<good>{SUCCESS})|(?P<bad>{FAILURE}))\b{CHOICE}"
STATUS_LINE = re.compile(rf"^\W*(?:\d+\W+)?{STATUS}", re.IGNORECASE)
STATUS_AT_END = re.compile(rf"{STATUS}\W*$", re.IGNORECASE)

WORD = re.compile(r"\bNOT[\s*_\"'`-]+SUCCESS\b|\bFAILURE\b|\bSUCCESS\b")
DENIED = re.compile(r"(?:\bnot|n't|n’t|\bcannot|\bnever|\bno)\b[^.;:!?]{0,60}$", re.IGNORECASE)

COVERAGE = re.compile(
    r"^\W*(?:\d+\W+)?coverage\W*[:=：]\W*"
    r"(?:(?P<none>not|un|none)|(?P<part>part)|(?P<full>(?:fully\s+)?covered\b))"
    r"(?![^,\n]*,\s*(?:partly|or))",
    re.IGNORECASE,
)

SCORE = re.compile(
    r"\bscore\b\W*(?:1\s*(?:-|–|to)\s*5\W+)?([1-5])(?!\w|[.,]\d|\s*(?:-|–|to)\s*\d)", re.IGNORECASE
)
REASONING = re.compile(r"\b(?:reasoning|thoughts?)\b\W*[:：]\W*", re.IGNORECASE)


def status(reply: str) -> bool:
    """Whether the last `Status:` line says success.

    A status in the middle of a line counts only as the very end of the reply.
    """
    text = _spoken(reply)
    found = [match for line in text.splitlines() if (match := STATUS_LINE.search(line))]
    last = found[-1] if found else STATUS_AT_END.search(text)
    if last is None:
        raise ValueError(f'no line `Status: "success"` or "failure" in the reply {_end(reply)}')
    return last["good"] is not None


def success_word(reply: str) -> bool:
    """Whether the last of the words SUCCESS, NOT SUCCESS and FAILURE, in capitals, is SUCCESS.

    WebVoyager's form of a verdict. A line with both, or one that denies the word some other way, is none.
    """
    for line in reversed(_spoken(reply).splitlines()):
        words = list(WORD.finditer(line))
        if not words:
            continue
        good = [match for match in words if match[0] == "SUCCESS"]
        if not good:
            return False
        if len(good) < len(words) or any(DENIED.search(line[: match.start()]) for match in good):
            break
        return True
    raise ValueError(f"neither SUCCESS nor NOT SUCCESS as a verdict in the reply {_end(reply)}")


def image_score(reply: str) -> tuple[int, str]:
    """The last score from 1 to 5, and the first paragraph of the reasoning before it."""
    text = _spoken(reply)
    found = list(SCORE.finditer(text))
    if not found:
        raise ValueError(f"no score from 1 to 5 in the reply {_end(reply)}")
    before = text[: found[-1].start()]
    return int(found[-1][1]), _paragraph(REASONING.split(before, maxsplit=1)[-1])


def coverage(reply: str) -> float:
    """1 for covered, 0.5 for partly covered, 0 for not covered, by the last `Coverage:` line."""
    lines = _spoken(reply).splitlines()
    found = [match for line in lines if (match := COVERAGE.search(line))]
    if not found:
        raise ValueError(f"no line `Coverage: covered`, partly or not, in the reply {_end(reply)}")
    return {"none": 0.0, "part": 0.5, "full": 1.0}[str(found[-1].lastgroup)]


def thoughts(reply: str) -> str:
    """What stands before the verdict."""
    text = _spoken(reply)
    lines = [line for line in text.splitlines() if not STATUS_LINE.search(line)]
    return REASONING.split("\n".join(lines), maxsplit=1)[-1].strip()


def _spoken(reply: str) -> str:
    """Without the thinking that some servers leave in the text; nothing where that never ended."""
    _, closed, after = reply.rpartition("</think>")
    return after if closed else reply.partition("<think>")[0]


def _paragraph(text: str) -> str:
    first = re.split(r"\n\s*\n", text.strip())[0]
    return re.sub(r"(?:\s\d+[.)])?[\s*-]*$", "", " ".join(first.split()))


def _end(reply: str) -> str:
    return repr(reply[-200:])
