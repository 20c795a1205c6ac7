"""Finding programs: scripts with what runs them, versions too old, the version that is tested."""

import json
from pathlib import Path

import pytest

from rollout.errors import UsageError
from rollout.harness import Harness
from rollout.programs import NODE, Found, Program

ROOT = Path(__file__).parents[2]


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def runtime(tmp_path):
    """Says which script it was given."""
    path = written(
        tmp_path / "bin/run", '[ "$1" = --version ] && echo v22.20.1 || echo "1.2 of $1"'
    )
    return Program(name=path, oldest=(22, 19))


async def test_a_script_is_started_by_its_runtime(tmp_path, runtime):
    script = written(tmp_path / "x/node_modules/tool/dist/main.mjs", "exit 1")
    link = tmp_path / "tool"
    link.symlink_to(script)
    found = await Program(name=str(link), runtime=runtime).find()
    assert found == Found(str(link), "1.2", runtime.name)
    assert found.command == (runtime.name, str(link))


async def test_what_is_no_script_starts_by_itself(tmp_path, runtime):
    native = written(tmp_path / "native", "echo tool 3.1.4, built today")
    assert await Program(name="tool", runtime=runtime).find(native) == Found(native, "3.1.4")


async def test_what_is_too_old_is_named_with_the_remedy(tmp_path):
    old = written(tmp_path / "old", "echo v22.18.9")
    program = Program(name=old, oldest=(22, 19), install="make harnesses")
    with pytest.raises(UsageError, match=r"22\.18\.9, 22\.19 or newer is needed; .*make harnesses"):
        await program.find()


async def test_npms_script_is_shown_with_all_that_it_loads(tmp_path, runtime):
    class Scripted(Harness):
        dialect = "chat"
        surfaces = ("mcp",)
        program = Program(name="tool", runtime=runtime)

    script = written(tmp_path / "x/node_modules/@a/tool/dist/main.mjs", "exit 1")
    harness = Scripted(script)
    await harness.prepare()
    assert harness.command == (runtime.name, script)
    assert harness.program_folders == (
        tmp_path / "bin",
        tmp_path / "x/node_modules/@a/tool/dist",
        tmp_path / "x/node_modules",
    )


async def test_another_version_than_the_tested_one_is_noted(tmp_path):
    class Tool(Harness):
        dialect = "chat"
        surfaces = ("mcp",)
        program = Program(name="tool", package="@openai/codex")

    harness = Tool(written(tmp_path / "tool", "echo 0.0.1"))
    await harness.prepare()
    assert harness.note == f"tested with tool {Tool.program.tested}, found 0.0.1"
    harness.version = Tool.program.tested
    assert harness.note == ""


def test_a_preset_is_chosen_by_name():
    class Tool(Harness):
        dialect = "chat"
        surfaces = ("mcp",)
        presets = {"default": {}, "slim": {"tools": 1}}

    assert Tool().options == {}
    assert Tool(preset="slim").options == {"tools": 1}
    with pytest.raises(
        UsageError, match=r"unknown preset .* 'slin': did you mean 'slim'\? known: "
    ):
        Tool(preset="slin")


def test_the_tested_version_is_the_one_that_is_pinned():
    pinned = json.loads((ROOT / "package.json").read_text())["dependencies"]["@openai/codex"]
    assert Program(name="x", package="@openai/codex").tested == pinned
    assert Program(name="x", package="nowhere").tested == Program(name="x").tested == ""
    assert NODE.oldest
