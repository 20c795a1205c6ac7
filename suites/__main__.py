"""`python -m suites`: what there is to run."""

from __future__ import annotations

from rollout.plugins import load, plugins
from rollout.suite import Suite


def main() -> None:
    """Print a line for each suite."""
    names = plugins("suites", Suite)
    width = max(map(len, names))
    for name in names:
        print(f"python -m suites.{name:{width}}  {load('suites', name, Suite).title}")


if __name__ == "__main__":
    main()
