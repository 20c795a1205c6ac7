"""What training needs beside the core, looked for before anything imports it."""

from __future__ import annotations

import importlib.util

from rollout.errors import UsageError

__all__ = ["need_torch"]


def need_torch(what: str) -> None:
    """Raises UsageError where the packages of a local model are missing; `what` asks for them."""
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        packages = " and ".join(missing)
        raise UsageError(
            f"{what} needs {packages}: pip install {' '.join(missing)}, or use "
            ".venv-verl/bin/python, which make verl-cpu installs"
        )
