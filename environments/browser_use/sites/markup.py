"""HTML from templates that escape what is put into them."""

from __future__ import annotations

import html
from collections.abc import Iterable
from string import Formatter
from typing import Any

__all__ = ["Markup", "h"]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def h(template: str, /, **values: Any) -> Markup:
    """The template with its `{name}` fields filled in, escaped unless they are `Markup`.

    Collections are joined; None and False leave nothing.
    """
    return Markup(_ESCAPING.vformat(template, (), values))


class _Escaping(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec:
            value = format(value, format_spec)
        return _html(value)


def _html(value: Any) -> str:
    if isinstance(value, Markup):
        return value
    if value is None or value is False:
        return ""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "".join(map(_html, value))
    return html.escape(str(value))


_ESCAPING = _Escaping()
