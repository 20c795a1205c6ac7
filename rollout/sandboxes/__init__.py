"""Sandbox providers: one module each, found by name."""

from __future__ import annotations

from rollout import plugins
from rollout.contract import check
from rollout.errors import UsageError
from rollout.sandbox import SandboxProvider

__all__ = ["choose"]


async def choose(name: str) -> SandboxProvider:
    """The provider of that name; `auto` is bubblewrap where it works, else local.

    The provider's `warning` is for the caller to print. Raises UsageError when the named provider is
    unknown, or can't work here.
    """
    provider = _make("bubblewrap" if name == "auto" else name)
    problem = await provider.check()
    if problem and name != "auto":
        raise UsageError(f"--sandbox {name}: {problem}")
    if not problem:
        return provider
    fallback = _make("local")
    fallback.warning = f"{fallback.warning} ({problem})"
    return fallback


def _make(name: str) -> SandboxProvider:
    provider = plugins.load(__name__, name, SandboxProvider, "sandbox")()
    check(provider, SandboxProvider)
    return provider
