"""The README's examples are complete, its links lead somewhere, and its options exist."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^`(\S+\.py)`:.*?\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

# What a user's own folder of plug-ins looks like to the packages: extra places to find modules in.
EXTEND = """
import runpy, sys
import environments, harness_wrappers, suites
for package in (environments, harness_wrappers, suites):
    package.__path__.append(f"{sys.argv[1]}/{package.__name__}")
module = sys.argv[2]
sys.argv = [module, *sys.argv[3:]]
runpy.run_module(module, run_name="__main__")
"""


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    found = EXAMPLE.findall(README)
    assert [name for name, _ in found] == [
        "environments/notes.py",
        "suites/notes.py",
        "harness_wrappers/oneshot.py",
    ]
    for name, code in found:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    return folder


def run(examples: Path, module: str, *argv: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", EXTEND, str(examples), module, *argv, "--json", "--quiet"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize("tools", ["native", "mcp"])
def test_the_environment_and_the_suite_work_together(
    examples: Path, tmp_path: Path, tools: str
) -> None:
    result = run(examples, "suites.notes", "--tools", tools, "--out", str(tmp_path / "run"))
    assert result["outcomes"] == {"passed": 3}


def test_the_harness_runs_any_suite(examples: Path, tmp_path: Path) -> None:
    """It can't use tools, so it fails: gracefully, and graded."""
    out = str(tmp_path / "run")
    argv = ("--harness", "oneshot", "--tasks", "2", "--attempts", "1", "--out", out)
    result = run(examples, "suites.claweval", *argv)
    assert result["outcomes"] == {"failed": 2}


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_the_options_that_it_names_exist() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "suites.claweval", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    commands = re.findall(r"^python -m suites\.claweval (.*?)(?: #|$)", README, re.MULTILINE)
    assert commands
    for option in {word for command in commands for word in command.split() if word[:2] == "--"}:
        assert option in done.stdout, option
