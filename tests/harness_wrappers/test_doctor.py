"""The doctor: one line per harness, and exit code 1 only for one that is installed and does not work."""

import sys

import pytest

from harness_wrappers import _doctor
from harness_wrappers.__main__ import _doctor as command
from harness_wrappers._doctor import examine
from rollout.errors import UsageError
from rollout.programs import Program
from rollout.sandboxes.local import Local

WRAPPER = """
from rollout.harness import Harness, Launch
from rollout.programs import Program

class Scripted(Harness):
    dialect = "chat"
    surfaces = ("mcp",)
    program = Program(name={name!r}, install="magic", package="@openai/codex")

    def launch(self, job, sandbox):
        return Launch(argv=(self.executable,), env={{}})
"""


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """Makes a harness module `doctored.NAME` of a shell script."""
    (tmp_path / "doctored").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name, script=""):
        program = tmp_path / name
        if script:
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        (tmp_path / f"doctored/{name}.py").write_text(WRAPPER.format(name=str(program)))
        return f"doctored.{name}"

    yield make
    for name in [name for name in sys.modules if name.startswith("doctored")]:
        del sys.modules[name]


async def found(name):
    (finding,) = [finding async for finding in examine([name], Local())]
    return finding


async def test_a_harness_that_works_says_so_for_each_surface():
    finding = await found("react")
    assert not finding.failed
    assert [surface for surface, _ in finding.episodes] == ["native", "mcp", "skill"]
    assert str(finding).startswith("react        works   native passed in ")


async def test_one_that_is_missing_comes_with_the_remedy(scripted):
    finding = await found(scripted("absent"))
    assert not finding.failed
    assert str(finding).endswith("is not installed; get it with: magic")


async def test_one_that_fails_comes_with_cause_and_version(scripted):
    finding = await found(scripted("broken", 'echo "tool 0.0.1"'))
    assert finding.failed
    line = str(finding)
    assert "FAILS   0.0.1 (tested with " in line
    assert "mcp infra_error (harness): the harness ended without asking the model" in line
    assert line.endswith(f"Remedy: install version {finding.tested}")


async def test_the_tested_version_that_fails_is_to_be_looked_at(scripted):
    tested = Program("codex", install="", package="@openai/codex").tested
    finding = await found(scripted("same", f"echo tool {tested}"))
    assert f"suites.claweval --harness {finding.name} --tasks 1" in str(finding)


async def test_exit_codes(scripted, capsys):
    assert await command(["react", scripted("gone")], "local") == 0
    assert await command([scripted("bad", "echo 1.0")], "local") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("sandbox      local: ")
    with pytest.raises(UsageError, match="unknown harness 'reakt'"):
        await command(["reakt"], "local")


async def test_a_task_that_is_not_done_is_a_failure(monkeypatch):
    monkeypatch.setattr(_doctor, "SECRET", "another")
    finding = await found("react")
    assert finding.failed
    assert "failed: saved " in str(finding)
