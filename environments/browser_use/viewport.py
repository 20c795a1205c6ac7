"""The screen: its size in pixels, and the time limits of what happens on it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HEIGHT", "WIDTH", "Limits", "pixels"]

WIDTH = 1280
HEIGHT = 720


@dataclass(frozen=True)
class Limits:
    """How long things may take, seconds."""

    call: float = 60.0
    """One tool call, the screenshot included."""
    navigation: float = 20.0
    """Until a server answers with a page."""
    settle: float = 3.0
    """Until a page that is there has loaded what an action made it load."""
    quiet: float = 0.1
    """A page on which nothing starts for so long is at rest."""
    probe: float = 5.0
    """One question to a page: its title, an element. A page that takes longer hangs."""
    screenshot: float = 10.0
    locate: float = 2.0
    """Until a target of a scripted solution has appeared."""


def pixels(x: float, y: float) -> tuple[float, float]:
    """Fractions of the viewport as CSS pixels; 1.0 is the last pixel."""
    return min(x * WIDTH, WIDTH - 1.0), min(y * HEIGHT, HEIGHT - 1.0)
