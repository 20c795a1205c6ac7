"""Real runs of policies of known quality, once for all tests of reports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """react with a good and a poor policy, on six built-in tasks of claweval."""
    folder = tmp_path_factory.mktemp("runs")
    runs = {"good": "p=1", "poor": "p=0.3"}
    for name, p in runs.items():
        command = [sys.executable, "-m", "suites.claweval", "--harness", "react", "--quiet"]
        command += ["--model", f"noisy-reference:{p}", "--tasks", "6", "--sandbox", "local"]
        done = subprocess.run(
            [*command, "--out", str(folder / name)],
            cwd=ROOT,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    return {name: folder / name for name in runs}
