"""From a name to the plug-in: `codex` -> `harness_wrappers.codex` -> the one `Harness` it exports.

There is no registry. A module in the right folder is found by its name; a dotted path
(`mypackage.myharness`) works as well, so a plug-in may live outside this project.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Iterable
from difflib import get_close_matches
from types import ModuleType
from typing import TypeVar

from rollout.errors import UsageError, described

__all__ = ["available", "load", "plugins", "unknown"]

T = TypeVar("T")


def available(package: str) -> list[str]:
    """Names of the public modules in a plug-in package, sorted."""
    folder = importlib.import_module(package)
    return sorted(m.name for m in pkgutil.iter_modules(folder.__path__) if m.name[0] != "_")


def load(package: str, name: str, base: type[T], what: str = "") -> type[T]:
    """The one concrete subclass of `base` that module `name` of `package` defines.

    Raises UsageError for an unknown name (with the nearest known one) and for a module that exports
    none or several, or fails as it is imported. `what` is the word that users have for such a plug-in,
    if it is not the class's.
    """
    what = what or base.__name__.lower()
    path = name if "." in name else f"{package}.{name.replace('-', '_')}"
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is not None and (path + ".").startswith(error.name + "."):
            raise unknown(what, name, plugins(package, base)) from None
        if error.name is None or _is_ours(error.name):
            raise UsageError(f"{what} {name!r} can't be loaded: {described(error)}") from error
        raise UsageError(
            f"{what} {name!r} needs the Python package {error.name!r}: pip install {error.name}"
        ) from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{what} {name!r} can't be loaded: {described(error)}") from error
    found = _defined(module, base)
    if len(found) == 1 and inspect.isabstract(found[0]):
        missing = ", ".join(
            sorted(f"{each}()" for each in getattr(found[0], "__abstractmethods__", ()))
        )
        raise UsageError(f"{path}: {found[0].__name__} does not define {missing}")
    found = [each for each in found if not inspect.isabstract(each)]
    if len(found) != 1:
        names = ", ".join(value.__name__ for value in found) or "none"
        raise UsageError(f"{path} must define exactly one {base.__name__} subclass; found: {names}")
    return found[0]


def _defined(module: ModuleType, base: type[T]) -> list[type[T]]:
    """The subclasses of `base` that a module, or what is inside it, defines."""
    path = module.__name__
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, base)
        and (value.__module__ == path or value.__module__.startswith(path + "."))
    ]


def plugins(package: str, base: type) -> list[str]:
    """Of the modules in a package, those that are a plug-in and can be imported: others help them."""
    return [name for name in available(package) if _is_plugin(f"{package}.{name}", base)]


def _is_plugin(path: str, base: type) -> bool:
    """Whether a module defines one that can be imported here."""
    try:
        found: list[type] = _defined(importlib.import_module(path), base)
    except (Exception, SystemExit):
        return False
    return any(not inspect.isabstract(each) for each in found)


def _is_ours(module: str) -> bool:
    """Whether a module that is missing would be part of an installed package: a misspelt name."""
    root = module.partition(".")[0]
    return root != module and importlib.util.find_spec(root) is not None


def unknown(what: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is none of the known ones, with the one that may be meant."""
    names = list(known)
    close = get_close_matches(name.replace("-", "_"), names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return UsageError(f"unknown {what} {name!r}: {hint}known: {', '.join(names)}")
