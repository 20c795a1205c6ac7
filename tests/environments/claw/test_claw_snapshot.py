"""What graders are told of the sandbox: commands, files, and what the agent could not see before."""

import os
from base64 import b64encode
from pathlib import Path

import pytest

from environments.claw.snapshot import WORKSPACE, SnapshotSpec, take_snapshot
from rollout.sandbox import SandboxSpec
from rollout.sandboxes.bubblewrap import Bubblewrap
from rollout.sandboxes.docker import Docker


@pytest.fixture(params=[Bubblewrap, pytest.param(Docker, marks=pytest.mark.docker)])
async def sandbox(request):
    provider = request.param()
    if why := await provider.check():
        pytest.skip(why)
    spec = SandboxSpec(gateway_socket=Path(os.devnull), gateway_port=0)
    async with provider.open(spec) as sandbox:
        yield sandbox


async def test_commands_are_run_as_they_are_and_see_the_graders_files(sandbox, tmp_path):
    (tmp_path / "verify.py").write_text("print(open('/workspace/made.txt').read())")
    commands = (
        "python /workspace/fixtures/verify.py",
        "cat made.txt; echo oops >&2; exit 3",
        "test -f /workspace/none && echo EXISTS || echo MISSING",
    )
    spec = SnapshotSpec(
        commands=commands, grader_files={"fixtures/verify.py": str(tmp_path / "verify.py")}
    )
    await sandbox.write({f"{WORKSPACE}/made.txt": "by the agent"})
    assert await sandbox.read(f"{WORKSPACE}/fixtures/verify.py") is None
    found = await take_snapshot(spec, sandbox)
    assert list(found) == [f"cmd:{command}" for command in commands]
    assert found[f"cmd:{commands[0]}"] == {"exit_code": 0, "stdout": "by the agent\n", "stderr": ""}
    assert found[f"cmd:{commands[1]}"] == {
        "exit_code": 3,
        "stdout": "by the agent",
        "stderr": "oops\n",
    }
    assert found[f"cmd:{commands[2]}"]["stdout"] == "MISSING\n"


async def test_a_command_that_takes_too_long_is_ended(sandbox):
    found = await take_snapshot(SnapshotSpec(commands=("sleep 600",), timeout=0.5), sandbox)
    assert found["cmd:sleep 600"] == {
        "exit_code": -1,
        "stdout": "",
        "stderr": "Timed out after 0.5s",
    }


async def test_files_are_read_after_the_commands_and_patterns_give_fifty_at_most(sandbox):
    await sandbox.write({f"{WORKSPACE}/many/{n:02}.csv": str(n) for n in range(60)})
    await sandbox.write(
        {f"{WORKSPACE}/picture.png": b"\x89PNG\xff", f"{WORKSPACE}/odd.xyz": b"\xff"}
    )
    spec = SnapshotSpec(
        commands=("echo late > late.txt",),
        files=tuple(
            f"{WORKSPACE}/{name}" for name in ("*.txt", "many/*", "*.png", "odd.xyz", "no.md")
        ),
    )
    found = await take_snapshot(spec, sandbox)
    assert found[f"file:{WORKSPACE}/late.txt"] == {
        "content": "late\n",
        "mime_type": "text/plain",
        "encoding": "utf-8",
    }
    assert [key for key in found if "/many/" in key] == [
        f"file:{WORKSPACE}/many/{n:02}.csv" for n in range(50)
    ]
    assert found[f"file:{WORKSPACE}/picture.png"]["content"] == b64encode(b"\x89PNG\xff").decode()
    assert found[f"file:{WORKSPACE}/odd.xyz"]["mime_type"] == "chemical/x-xyz"
    assert found[f"file:{WORKSPACE}/no.md"] == {"error": f"File not found: {WORKSPACE}/no.md"}


async def test_an_agent_can_not_spoil_the_snapshot(sandbox, tmp_path):
    """Whatever it leaves behind, it is graded: an error of the infrastructure would be another try."""
    traps = """
import os
os.makedirs("verify.py/in/the/way")
for name in ("glob", "json"): open(name + ".py", "w").write("import os; os._exit(3)")
open("made.txt", "w").write("made")
os.mkdir("deep"); os.chdir("deep")
for _ in range(3000): os.mkdir("d"); os.chdir("d")
os.chmod("/workspace", 0)
"""
    await sandbox.exec(["/usr/bin/python3", "-I", "-c", traps], env={}, cwd=WORKSPACE)
    (tmp_path / "verify.py").write_text("print(6 * 7)")
    spec = SnapshotSpec(
        commands=("python3 -I verify.py",),
        files=(f"{WORKSPACE}/*.txt", f"{WORKSPACE}/**/*.md"),
        grader_files={"verify.py": str(tmp_path / "verify.py")},
    )
    found = await take_snapshot(spec, sandbox)
    assert found["cmd:python3 -I verify.py"]["stdout"] == "42\n"
    assert found[f"file:{WORKSPACE}/made.txt"]["content"] == "made"
    assert "RecursionError" in found[f"file:{WORKSPACE}/**/*.md"]["error"]


async def test_a_path_outside_is_an_error_in_its_place(sandbox):
    found = await take_snapshot(SnapshotSpec(files=("/etc/shadow",)), sandbox)
    assert "not below" in found["file:/etc/shadow"]["error"]


async def test_ground_truth_never_enters_the_sandbox(sandbox, tmp_path):
    (tmp_path / "truth.json").write_text("42")
    spec = SnapshotSpec(
        commands=("ls",), local_files={"gt/truth.json": str(tmp_path / "truth.json")}
    )
    found = await take_snapshot(spec, sandbox)
    assert found["cmd:ls"]["stdout"] == ""
    assert found["local_file:gt/truth.json"] == {
        "encoding": "base64",
        "content": b64encode(b"42").decode(),
    }
