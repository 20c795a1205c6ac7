"""Where a protocol's prompts come from: our own words, or the user's checkout of the official judge.

The official prompts are read from the Python source of that checkout; nothing of it is run, and nothing
of it is kept here. Scores under different prompts are not comparable, so the source is part of every
fingerprint.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path
from string import Formatter

import msgspec

from rollout.errors import UsageError
from rollout.types import JsonObject

__all__ = ["SourceFile", "fingerprint", "own_only"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


class SourceFile:
    """A Python file of a checkout. Raises UsageError where it is not what is expected."""

    def __init__(self, checkout: Path, name: str, repository: str) -> None:
        self.name = name
        self._path = checkout / name
        self._repository = repository
        try:
            source = self._path.read_bytes()
        except OSError as error:
            raise UsageError(
                f"--judge-prompts {checkout}: {name}: {error.strerror}; "
                f"name a checkout of {repository}"
            ) from error
        self.sha256 = hashlib.sha256(source).hexdigest()
        try:
            self._tree = ast.parse(source)
        except (SyntaxError, ValueError) as error:
            raise self._unexpected(f"is no Python ({error})") from error

    def texts(self, name: str, function: str = "", *, fields: Iterable[str] = ()) -> list[str]:
        """The strings that are assigned to a name, in order; at least one.

        With `fields` they must be templates for `str.format` over no other fields.
        """
        scope = self._function(function).body if function else self._tree.body
        found = [
            node.value.value
            for statement in scope
            for node in ast.walk(statement)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ]
        where = f"{function}: {name}" if function else name
        if not found:
            raise self._unexpected(f"assigns no text to {where}")
        for text in found if fields else ():
            self._check(where, text, set(fields))
        return found

    def message_text(self, function: str) -> str:
        """The text that a function itself puts into a chat message: `{"type": "text", "text": "..."}`."""
        for node in ast.walk(self._function(function)):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if _is(key, "text") and isinstance(value, ast.Constant):
                        return str(value.value)
        raise self._unexpected(f"puts no text into a message in {function}")

    def _function(self, name: str) -> Function:
        for node in self._tree.body:
            if isinstance(node, Function) and node.name == name:
                return node
        raise self._unexpected(f"has no function {name}")

    def _check(self, where: str, text: str, known: set[str]) -> None:
        try:
            used = {field for _, field, _, _ in Formatter().parse(text) if field is not None}
        except ValueError as error:
            raise self._unexpected(f"{where} is no template: {error}") from error
        if used - known:
            raise self._unexpected(f"{where} asks for {', '.join(sorted(used - known))}")

    def _unexpected(self, what: str) -> UsageError:
        return UsageError(
            f"--judge-prompts: {self._path} {what}; "
            f"use a release of {self._repository} that has it, or leave the option out"
        )


def _is(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def fingerprint(name: str, prompts: object, source: SourceFile | None) -> JsonObject:
    """A protocol's name, and which prompts it asks with."""
    if source is not None:
        known = {"prompts": "official", "prompts_file": source.name}
        return {"name": name, **known, "prompts_sha256": source.sha256}
    digest = hashlib.sha256(msgspec.json.encode(prompts)).hexdigest()
    return {"name": name, "prompts": "own", "prompts_sha256": digest}


def own_only(protocol: str, checkout: Path | None) -> None:
    """For protocols of ours. Raises UsageError where a checkout is named."""
    if checkout is not None:
        raise UsageError(
            f"--judge-prompts {checkout}: {protocol} has no official prompts; leave the option out"
        )
