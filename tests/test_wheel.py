"""The wheel holds all packages and their data, and works in an environment of its own."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("rollout", "environments", "harness_wrappers", "judges", "suites", "train", "reports")
CLEAN = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def tracked(*folders: str) -> list[str]:
    listing = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listing.stdout.split()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: a build folder in the checkout would keep files that are gone."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked():
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    options = ["-q", "--no-deps", "--no-build-isolation", "-w", str(source / "dist")]
    command = [sys.executable, "-m", "pip", "wheel", *options, str(source)]
    subprocess.run(command, check=True, capture_output=True)
    [path] = (source / "dist").glob("*.whl")
    return path


@pytest.mark.slow
def test_it_holds_code_data_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    code = tracked(*PACKAGES)
    assert {name for name in code if (ROOT / name).exists()} <= names
    assert not any(name.startswith(("tests/", "benchmarks/", "docs/")) for name in names)


@pytest.mark.slow
def test_it_runs_from_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    """Dependencies come from the tests' own environment: only the project itself is at stake."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)],
        check=True,
        capture_output=True,
        env=CLEAN,
    )
    [site] = (tmp_path / "venv").glob("lib/python*/site-packages")
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies), encoding="utf-8")
    done = subprocess.run(
        [python, "-m", "suites.claweval", "--tasks", "2", "--json", "--quiet", "--out", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=CLEAN,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcomes"] == {"passed": 6}
