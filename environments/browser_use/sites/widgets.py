"""The pieces of HTML that the sites have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from environments.browser_use.sites.markup import Markup, h

__all__ = [
    "button_form",
    "card",
    "choice",
    "choices",
    "facts",
    "field",
    "hidden",
    "options",
    "pages",
    "select",
    "table",
    "tag",
]


def card(title: str, *body: Markup, kind: str = "") -> Markup:
    """A block with a heading; `kind` is `narrow` for a short text in the middle of the page."""
    text = '<section class="card {kind}"><h1>{title}</h1>{body}</section>'
    return h(text, kind=kind, title=title, body=body)


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """A list of names and values."""
    rows = [h("<dt>{name}</dt><dd>{value}</dd>", name=name, value=value) for name, value in pairs]
    return h("<dl>{rows}</dl>", rows=rows)


def table(head: Iterable[str], rows: Iterable[Iterable[object]], right: int = 0) -> Markup:
    """A table; the last `right` columns hold numbers."""
    titles = list(head)

    def cells(kind: str, values: Iterable[object]) -> list[Markup]:
        text = f'<{kind} class="{{mark}}">{{value}}</{kind}>'
        first = len(titles) - right
        return [
            h(text, mark="number" if n >= first else "", value=value)
            for n, value in enumerate(values)
        ]

    lines = [cells("th", titles), *(cells("td", row) for row in rows)]
    return h("<table>{rows}</table>", rows=[h("<tr>{cells}</tr>", cells=line) for line in lines])


def tag(text: str, kind: str = "") -> Markup:
    """A small label: plain, `good` or `bad`."""
    return h('<span class="tag {kind}">{text}</span>', kind=kind, text=text)


def hidden(values: Mapping[str, object]) -> list[Markup]:
    """Values that a form sends along."""
    text = '<input type="hidden" name="{name}" value="{value}">'
    return [h(text, name=name, value=value) for name, value in values.items()]


def button_form(
    action: str, label: str, values: Mapping[str, object], *, kind: str = "quiet", ask: str = ""
) -> Markup:
    """A button that posts these values, after a question in a dialog where there is one."""
    return h(
        '<form method="post" action="{action}"{ask}>{values}'
        '<button class="{kind}">{label}</button></form>',
        action=action,
        ask=h(' data-confirm="{ask}"', ask=ask) if ask else "",
        values=hidden(values),
        kind=kind,
        label=label,
    )


def options(texts: Mapping[str, str], chosen: str = "") -> list[Markup]:
    """The entries of a list."""
    return [
        h(
            '<option value="{key}"{mark}>{text}</option>',
            key=key,
            mark=Markup(" selected" if key == chosen else ""),
            text=text,
        )
        for key, text in texts.items()
    ]


def field(name: str, label: str, value: str = "", error: str = "", *, kind: str = "text") -> Markup:
    """A labelled line of text, with what is wrong with it."""
    body = (
        h('<textarea name="{name}" rows="3">{value}</textarea>', name=name, value=value)
        if kind == "textarea"
        else h(
            '<input type="{kind}" name="{name}" value="{value}" autocomplete="off">',
            kind=kind,
            name=name,
            value=value,
        )
    )
    return _labelled(label, body, error)


def select(
    name: str, label: str, texts: Mapping[str, str], chosen: str = "", error: str = ""
) -> Markup:
    """A labelled native list."""
    body = h('<select name="{name}">{items}</select>', name=name, items=options(texts, chosen))
    return _labelled(label, body, error)


def choice(kind: str, name: str, value: str, text: str, chosen: bool = False) -> Markup:
    """One radio button or checkbox."""
    return h(
        '<label class="choice"><input type="{kind}" name="{name}" value="{value}"{mark}>'
        "{text}</label>",
        kind=kind,
        name=name,
        value=value,
        text=text,
        mark=Markup(" checked" if chosen else ""),
    )


def choices(
    name: str, label: str, texts: Mapping[str, str], chosen: str | None = None, error: str = ""
) -> Markup:
    """Radio buttons under a label."""
    return h(
        "<fieldset><legend>{label}</legend>{items}{error}</fieldset>",
        label=label,
        items=[choice("radio", name, key, text, key == chosen) for key, text in texts.items()],
        error=_error(error),
    )


def pages(addresses: Mapping[int, str], current: int) -> Markup:
    """Links to the pages of a list; nothing where there is one page only."""
    if len(addresses) < 2:
        return Markup("")
    links = [
        h("<b>{n}</b>", n=n) if n == current else h('<a href="{url}">{n}</a>', url=url, n=n)
        for n, url in addresses.items()
    ]
    return h('<div class="pages">{links}</div>', links=links)


def _labelled(label: str, body: Markup, error: str) -> Markup:
    text = '<label class="field"><span>{label}</span>{body}{error}</label>'
    return h(text, label=label, body=body, error=_error(error))


def _error(text: str) -> Markup:
    return h('<span class="error">{text}</span>', text=text) if text else Markup("")
