"""One real vLLM server for the session, serving the tiny model. Skipped where there is no vLLM."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.engine import Engine, Scorer, build_model

from rollout import sandboxes
from rollout.errors import UsageError
from rollout.gateway.upstreams.vllm import interpreter
from rollout.sandbox import SandboxProvider


@pytest.fixture(scope="session")
def engine_python() -> str:
    try:
        python = interpreter()
    except UsageError as error:
        pytest.skip(str(error))
    found = "import sys; from importlib.util import find_spec; sys.exit(find_spec('vllm') is None)"
    if subprocess.run([python, "-c", found]).returncode:
        pytest.skip(f"{python} has no vLLM: make vllm-cpu")
    return python


@pytest.fixture(scope="session")
def tiny(engine_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    build_model(engine_python, folder)
    return folder


@pytest.fixture(scope="session")
def engine(
    engine_python: str, tiny: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    with Engine(engine_python, tiny, tmp_path_factory.mktemp("engine")) as engine:
        yield engine


@pytest.fixture(scope="session")
def scorer(engine_python: str, tiny: Path) -> Iterator[Scorer]:
    with Scorer(engine_python, tiny) as scorer:
        yield scorer


@pytest.fixture(scope="session")
def sandbox_provider() -> SandboxProvider:
    return asyncio.run(sandboxes.choose("auto"))
