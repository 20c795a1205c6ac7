"""A run's suite again, with the options that it was run with, out of the manifest."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rollout.errors import UsageError
from rollout.manifest import Manifest
from rollout.plugins import available, load
from rollout.suite import Suite

__all__ = ["recorded_options", "recorded_suite"]


def recorded_options(suite: Suite, manifest: Manifest) -> dict[str, Any]:
    """The suite's own options as they were in the run, and `data`: a path, or None for built-in tasks."""
    parser = argparse.ArgumentParser(add_help=False)
    suite.add_arguments(parser.add_argument_group())
    known = vars(parser.parse_args([]))
    data = str(manifest.suite.get("data", "built-in"))
    told = {key: value for key, value in manifest.suite.items() if key in known}
    return told | {"data": None if data == "built-in" else Path(data)}


def recorded_suite(
    manifest: Manifest, data: Path | None = None, name: str = ""
) -> tuple[Suite, argparse.Namespace]:
    """The run's suite, configured as it was, and its options; `data` and `name` in place of the run's.

    A manifest may come from anywhere: of those that it names, only this project's own suites are
    imported. Raises UsageError for another one, and for options that no longer hold.
    """
    recorded = str(manifest.suite.get("name", ""))
    if not name and recorded not in available("suites"):
        raise UsageError(
            f"the run's suite is {recorded!r}, and there is no suite {recorded!r} here"
        )
    name = name or recorded
    suite = load("suites", name, Suite)()
    parser = argparse.ArgumentParser(exit_on_error=False)
    suite.add_arguments(parser.add_argument_group())
    parser.set_defaults(**recorded_options(suite, manifest))
    options = parser.parse_args([], argparse.Namespace(base_url="", judge=""))
    options.data = data or options.data
    suite.configure(options)
    return suite, options
