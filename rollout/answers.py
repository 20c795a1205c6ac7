"""What an agent's final message says, for the verifiers of tasks in English and Chinese."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["declined", "normalise", "numbers", "said", "said_any"]


def said(answer: str, *phrases: str) -> bool:
    """Whether the answer has every phrase; see `normalise` for what makes no difference.

    A phrase that begins or ends with a digit matches whole numbers only: 50 is not in 150 or 50.5.
    """
    text = normalise(answer)
    return all(_contains(text, phrase) for phrase in phrases)


def said_any(answer: str, *phrases: str) -> bool:
    """Whether the answer has at least one of the phrases."""
    text = normalise(answer)
    return any(_contains(text, phrase) for phrase in phrases)


def numbers(answer: str) -> list[float]:
    """The numbers in an answer, in order: `$1,250.50`, `1250,50 €` and `1,250.5元` are the same."""
    text = _DECIMAL_COMMA.sub(r"\1.\2", normalise(answer))
    return [float(number) for number in _NUMBER.findall(text)]


def declined(answer: str) -> bool:
    """Whether the answer says that what was asked for can't be done, or isn't there."""
    return _DECLINED.search(normalise(answer)) is not None


def normalise(text: str) -> str:
    """The text without what makes no difference to a reader.

    Case, full-width forms, thousands separators, runs of white space, white space beside Chinese
    characters, Markdown emphasis, and the many dashes and quotation marks.
    """
    # Before NFKC makes it an ASCII comma: between numbers it separates items, not thousands.
    text = unicodedata.normalize("NFKC", text.replace("，", ", ")).casefold()
    text = text.translate(_PLAIN)
    text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text)
    text = " ".join(text.split())
    return _BESIDE_CJK.sub("", text)


def _contains(text: str, phrase: str) -> bool:
    wanted = normalise(phrase)
    before = r"(?<!\d)(?<!\d\.)" if wanted[:1].isdigit() else ""
    after = r"(?!\d)(?!\.\d*[1-9])" if wanted[-1:].isdigit() else ""
    return re.search(before + re.escape(wanted) + after, text) is not None


_PLAIN = str.maketrans(
    {
        **dict.fromkeys("*`", ""),
        **dict.fromkeys("‐‑‒–—−", "-"),
        **dict.fromkeys("‘’", "'"),
        **dict.fromkeys("“”", '"'),
    }
)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)")
_CJK = "[\u3000-\u303f\u3400-\u9fff\uf900-\ufaff]"
_BESIDE_CJK = re.compile(rf"(?<={_CJK}) | (?={_CJK})")
_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2})(?![\d,])")
_DECLINED = re.compile(
    r"infeasible|impossible|unavailable|not (?:available|possible|offered|exist)|no such|there is no\b"
    r"|there are no\b|(?:can|could|do|does|did|is|are)(?: not|n't|not)\b"
    r"|没有|不存在|无法|不能|不可|不提供|未找到|找不到"
)
