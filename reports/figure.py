"""The contract between charts and the page: what Plotly draws, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout.types import JsonObject

__all__ = ["Figure"]


@dataclass(frozen=True)
class Figure:
    """A chart: what Plotly draws, and what is said of it."""

    name: str
    title: str
    about: str
    data: list[JsonObject]
    layout: JsonObject = field(default_factory=dict)
    height: int = 360
    """Pixels; kept free before the chart is drawn, so that nothing jumps."""
    width: int = 0
    """Pixels that it needs at least; on a narrower screen it scrolls."""
