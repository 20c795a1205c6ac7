"""Sampling parameters that the run forces upon every model call, whatever the harness asked for."""

from __future__ import annotations

from rollout.types import DialectName, JsonObject

__all__ = ["can_force", "force"]

CAPS: dict[DialectName, tuple[str, ...]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
}
"""Where a dialect says how long a reply may be; the first is used when the harness says nothing."""

KNOWN: dict[DialectName, frozenset[str]] = {
    "responses": frozenset({"temperature", "top_p"}),
    "messages": frozenset({"temperature", "top_p", "top_k"}),
}
"""Chat parameters that another dialect has too, under the same name."""


def can_force(sampling: JsonObject, dialect: DialectName) -> bool:
    """Whether Responses or Messages can say all of `sampling`. Chat can: it is said in its terms."""
    return sampling.keys() <= KNOWN[dialect]


def force(body: JsonObject, dialect: DialectName, sampling: JsonObject, max_output: int) -> None:
    """Make `body` ask for a whole reply, of `max_output` tokens at most, sampled as the run says."""
    body.pop("stream", None)
    body.pop("stream_options", None)
    body.update(sampling)
    asked = [name for name in CAPS[dialect] if isinstance(body.get(name), int)]
    for name in asked or CAPS[dialect][:1]:
        body[name] = min(body[name], max_output) if asked else max_output
