"""From a name to the plug-in: `codex` -> `harness_wrappers.codex` -> the one `Harness` it exports.

There is no registry. A module in the right folder is found by its name; a dotted path
(`mypackage.myharness`) works as well, so a plug-in may live outside this project.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TypeVar

from rollout.errors import UsageError

__all__ = ["available", "load", "unknown"]

T = TypeVar("T")


def available(package: str) -> list[str]:
    """Names of the public modules in a plug-in package, sorted."""
    folder = importlib.import_module(package)
    return sorted(m.name for m in pkgutil.iter_modules(folder.__path__) if m.name[0] != "_")


def load(package: str, name: str, base: type[T], what: str = "") -> type[T]:
    """The one concrete subclass of `base` that module `name` of `package` defines.

    Raises UsageError for an unknown name (with the nearest known one) and for a module that exports
    none or several. `what` is the word that users have for such a plug-in, if it is not the class's.
    """
    what = what or base.__name__.lower()
    path = name if "." in name else f"{package}.{name.replace('-', '_')}"
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is None or not path.startswith(error.name):
            raise UsageError(
                f"{what} {name!r} needs the Python package {error.name!r}: pip install {error.name}"
            ) from error
        raise unknown(what, name, available(package)) from None
    found = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and not inspect.isabstract(value)
        and (value.__module__ == path or value.__module__.startswith(path + "."))
    ]
    if len(found) != 1:
        names = ", ".join(value.__name__ for value in found) or "none"
        raise UsageError(f"{path} must define exactly one {base.__name__} subclass; found: {names}")
    return found[0]


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is none of the known ones, with the one that may be meant."""
    names = list(known)
    close = get_close_matches(name.replace("-", "_"), names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return UsageError(f"unknown {what} {name!r}: {hint}known: {', '.join(names)}")
