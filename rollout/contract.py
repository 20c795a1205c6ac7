"""Whether a plug-in keeps to its contract, told in one line before anything runs.

Nobody's plug-in is type-checked for them, and Python calls a method that does not fit only when an
episode is there already: so names, parameters and returned values are looked at here.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from rollout.errors import UsageError, shown
from rollout.types import Task

__all__ = ["Checked", "check", "checked_tasks", "returned"]

T = TypeVar("T")

KINDS: tuple[tuple[Callable[[object], bool], str], ...] = (
    (inspect.iscoroutinefunction, "an async function"),
    (inspect.isasyncgenfunction, "an async generator (is @asynccontextmanager missing?)"),
    (inspect.isgeneratorfunction, "a generator"),
)


class Checked:
    """Base of dataclasses that plug-ins make: what has the wrong type is refused as it is made."""

    def __post_init__(self) -> None:
        """Raises TypeError naming the field."""
        for name, kind in _fields(type(self)):  # type: ignore[arg-type]
            try:
                msgspec.convert(getattr(self, name), kind, builtin_types=(bytes,))
            except msgspec.ValidationError as error:
                raise TypeError(f"{type(self).__name__}.{name}: {error}") from None


def check(plugin: object, base: type) -> None:
    """Raises UsageError where an instance has not what its base class asks for.

    That is: values for the attributes that the base leaves open, and methods that are as the base's
    (async or not) and take what those take.
    """
    if not isinstance(plugin, base):
        what = plugin.__name__ if inspect.isclass(plugin) else type(plugin).__name__
        hint = f"; write {what}()" if inspect.isclass(plugin) and issubclass(plugin, base) else ""
        raise UsageError(f"{what} is not an instance of {base.__name__}{hint}")
    kind = type(plugin)
    place = f"{_home(kind)}: {kind.__name__}"
    for name, hint in _open_attributes(base):
        if not hasattr(plugin, name):
            raise UsageError(f"{place} needs the attribute {name!r}")
        try:
            msgspec.convert(getattr(plugin, name), hint)
        except msgspec.ValidationError as error:
            raise UsageError(f"{place}.{name}: {error}") from None
    for name, theirs in vars(base).items():
        mine = getattr(kind, name)
        if inspect.isfunction(theirs) and mine is not theirs and name[0] != "_":
            _check_method(f"{place}.{name}()", mine, theirs)


def returned(value: object, kind: type[T], by: str) -> T:
    """The value. Raises TypeError where a plug-in gave something else."""
    if not isinstance(value, kind):
        raise TypeError(f"{by} must give a {kind.__name__}, not {type(value).__name__}")
    return value


def checked_tasks(tasks: Iterable[Task]) -> list[Task]:
    """The tasks of a suite. Raises UsageError for what is none, or has a field of the wrong type."""
    if not isinstance(tasks, Iterable):
        raise UsageError(f"the suite's tasks() must return a list, not {type(tasks).__name__}")
    found = list(tasks)
    for task in found:
        if not isinstance(task, Task):
            raise UsageError(f"the suite's tasks() must return Tasks, not {type(task).__name__}")
        fields = {name: getattr(task, name) for name in Task.__struct_fields__}
        try:
            msgspec.convert(msgspec.to_builtins(fields), Task)
        except (msgspec.ValidationError, TypeError) as error:
            raise UsageError(f"task {task.id!r}: {error}") from None
    return found


def _home(kind: type) -> str:
    """The file of a class; its module's name where that is not known."""
    try:
        return shown(inspect.getfile(kind))
    except (OSError, TypeError):
        return kind.__module__


def _check_method(place: str, mine: Callable[..., Any], theirs: Callable[..., Any]) -> None:
    if (is_now := _kind(mine)) != (should := _kind(theirs)):
        raise UsageError(f"{place} must be {should}, not {is_now}")
    asked = inspect.signature(theirs)
    positional = [p for p in asked.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p.name for p in asked.parameters.values() if p.kind is p.KEYWORD_ONLY]
    try:
        inspect.signature(mine).bind(*positional, **dict.fromkeys(named))
    except TypeError as error:
        names = ", ".join(asked.parameters)
        raise UsageError(f"{place} must take ({names}): {error}") from None


def _kind(function: Callable[..., Any]) -> str:
    return next((words for test, words in KINDS if test(function)), "a plain function")


def _open_attributes(base: type) -> list[tuple[str, Any]]:
    """Of the attributes that a class declares, those that it gives no value, and their types."""
    hints = get_type_hints(base)
    names = [name for name in inspect.get_annotations(base) if not hasattr(base, name)]
    return [(name, _plain(hints[name])) for name in names]


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is ClassVar else hint
