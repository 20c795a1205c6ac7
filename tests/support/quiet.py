"""Imports of verl, without the warnings that it and Ray give while they are imported."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["verl_imports"]

WARNINGS = ("Ray state API is no longer experimental", ".* engine is not available")


@contextmanager
def verl_imports() -> Iterator[None]:
    with warnings.catch_warnings():
        for message in WARNINGS:
            warnings.filterwarnings("ignore", message=message)
        yield
