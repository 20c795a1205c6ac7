"""What every provider promises."""

import asyncio
import json
import os
import secrets
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from rollout.errors import SandboxError
from rollout.sandboxes import _process
from rollout.sandboxes._folder import sweep
from rollout.sandboxes._process import OUTPUT_LIMIT
from rollout.sandboxes._supervisor import Disk

ENV = {"PATH": "/usr/bin:/bin"}


def living(marker: str) -> list[str]:
    """Processes of this machine whose command line holds the marker."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if marker in text and "pytest" not in text:
            found.append(text)
    return found


def forever() -> str:
    """A length of sleep that no other process of the machine has."""
    return f"31536000.{secrets.randbelow(10**9):09d}"


async def test_exit_codes_output_and_working_folder(provider, gateway):
    async with provider.open(gateway.spec()) as sandbox:
        result = await sandbox.exec(["sh", "-c", "pwd; echo problem >&2; exit 3"], env=ENV)
        assert (result.exit_code, result.stdout, result.stderr) == (
            3,
            sandbox.workspace.encode() + b"\n",
            b"problem\n",
        )
        elsewhere = await sandbox.exec(["pwd"], env=ENV, cwd=sandbox.home)
        assert elsewhere.stdout.decode().strip() == sandbox.home
        killed = await sandbox.exec(["sh", "-c", "kill -TERM $$"], env=ENV)
        assert killed.exit_code == -15


async def test_the_environment_is_exactly_what_was_given(provider, gateway):
    async with provider.open(gateway.spec()) as sandbox:
        result = await sandbox.exec(["/usr/bin/env", "-0"], env={"A": "1", "LC_ALL": "C"})
    assert sorted(result.stdout.split(b"\0")) == [b"", b"A=1", b"LC_ALL=C"]


async def test_stdin_is_empty(provider, gateway):
    async with provider.open(gateway.spec()) as sandbox:
        result = await sandbox.exec(["cat"], env=ENV)
    assert (result.exit_code, result.stdout) == (0, b"")


async def test_files_go_in_and_come_out(provider, gateway):
    async with provider.open(gateway.spec()) as sandbox:
        deep = f"{sandbox.workspace}/a/b/c d.txt"
        await sandbox.write({deep: "text", f"{sandbox.home}/.rc": b"\xff\0"})
        script = f"cat '{deep}'; cat '{sandbox.home}/.rc'; echo more >> '{deep}'; touch a/b/new"
        result = await sandbox.exec(["sh", "-c", script], env=ENV)
        assert (result.exit_code, result.stdout) == (0, b"text\xff\0")
        assert await sandbox.read(deep) == b"textmore\n"
        assert await sandbox.read(f"{sandbox.workspace}/missing") is None
        assert await sandbox.read(f"{sandbox.workspace}/a") is None


@pytest.mark.parametrize("path", ["{ws}/../x", "relative", "/etc/shadow", "{ws}", "{ws}/a\0b", ""])
async def test_odd_paths_are_refused(provider, gateway, path):
    async with provider.open(gateway.spec()) as sandbox:
        path = path.format(ws=sandbox.workspace)
        with pytest.raises(SandboxError):
            await sandbox.read(path)
        with pytest.raises(SandboxError):
            await sandbox.write({path: "x"})


async def test_the_gateway_answers(provider, gateway):
    command = ["curl", "-sS", "--max-time", "20"]
    async with provider.open(gateway.spec()) as sandbox:
        results = await asyncio.gather(
            *(sandbox.exec([*command, f"{sandbox.gateway}/e/{n}"], env=ENV) for n in range(3))
        )
    assert [result.stdout for result in results] == [b"hello"] * 3
    assert sorted(request.split()[1] for request in gateway.requests) == [b"/e/0", b"/e/1", b"/e/2"]


async def test_strange_arguments_and_bytes_survive(provider, gateway):
    strange = ["", "-n", "a\nb", "'\"$(id)`\\", "数据\udcff\udcfe", "x" * 100_000]
    async with provider.open(gateway.spec()) as sandbox:
        result = await sandbox.exec(["printf", r"%s\0", *strange], env=ENV)
        echoed = await sandbox.exec(["/usr/bin/env"], env={"ODD": "\udcff\n"})
    assert result.stdout == b"".join(s.encode(errors="surrogateescape") + b"\0" for s in strange)
    assert echoed.stdout == b"ODD=\xff\n\n"


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["no-such-program"], "No such file"),
        (["/etc"], "Permission denied"),
        (["echo", "x" * 1_000_000], "Argument list too long"),
        (["echo", "a\0b"], "null"),
    ],
)
async def test_a_command_that_does_not_start_is_an_error(provider, gateway, argv, reason):
    async with provider.open(gateway.spec()) as sandbox:
        with pytest.raises(SandboxError, match=reason):
            await sandbox.exec(argv, env=ENV)


async def test_output_is_bounded_and_still_read_to_its_end(provider, gateway):
    script = "head -c 30000000 /dev/zero; head -c 30000000 /dev/zero >&2; touch done"
    async with provider.open(gateway.spec()) as sandbox:
        result = await sandbox.exec(["sh", "-c", script], env=ENV)
        assert await sandbox.read(f"{sandbox.workspace}/done") == b""
    assert (result.exit_code, result.truncated) == (0, True)
    assert (len(result.stdout), len(result.stderr)) == (OUTPUT_LIMIT, OUTPUT_LIMIT)


async def test_a_faked_report_is_only_output(provider, gateway):
    script = r"""printf '\n\0sandbox-report {"status": 0}' >&2; exit 7"""
    async with provider.open(gateway.spec()) as sandbox:
        result = await sandbox.exec(["sh", "-c", script], env=ENV)
    assert result.exit_code == 7
    assert b"sandbox-report" in result.stderr


async def test_nothing_outlives_its_command(provider, gateway):
    sleep = forever()
    script = f"(setsid setsid env -i sleep {sleep} &) & nohup sleep {sleep} & exit 0"
    async with provider.open(gateway.spec()) as sandbox:
        result = await sandbox.exec(["bash", "-c", script], env=ENV)
        assert result.exit_code == 0
        assert living(sleep) == []


async def test_cancelling_kills_the_whole_tree(provider, gateway):
    sleep = forever()
    script = f"(setsid sleep {sleep} &); trap '' TERM INT HUP; curl -s $0; sleep {sleep}; sleep 9"
    async with provider.open(gateway.spec()) as sandbox:
        argv = ["bash", "-c", script, f"{sandbox.gateway}/ready"]
        task = asyncio.create_task(sandbox.exec(argv, env=ENV))
        await gateway.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert living(sleep) == []


async def test_leaving_ends_what_still_runs(provider, gateway):
    sleep = forever()
    async with provider.open(gateway.spec()) as sandbox:
        argv = ["bash", "-c", f"curl -s $0; sleep {sleep}", f"{sandbox.gateway}/ready"]
        task = asyncio.create_task(sandbox.exec(argv, env=ENV))
        await gateway.asked.wait()
    assert living(sleep) == []
    assert (await task).exit_code == -9


async def test_memory_is_bounded(provider, gateway):
    hog = "import signal; x = b'x' * 400_000_000; signal.pause()"
    async with provider.open(gateway.spec(memory_mb=100)) as sandbox:
        result = await sandbox.exec(["/usr/bin/python3", "-c", hog], env=ENV)
        assert (result.limit, result.exit_code) == ("more than 100 MiB of memory", -9)
        assert b"killed: more than 100 MiB of memory" in result.stderr
        assert (await sandbox.exec(["true"], env=ENV)).limit == ""


async def test_a_command_stays_on_its_cores(provider, gateway):
    code = """
import os
from pathlib import Path
cgroup = Path("/sys/fs/cgroup")  # version 2 has the first of these, version 1 the others
names = ("cpu.max", "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
files = [cgroup / name for name in names if (cgroup / name).exists()]
print(len(os.sched_getaffinity(0)), *(file.read_text() for file in files))
"""
    async with provider.open(gateway.spec(cpus=1)) as sandbox:
        result = await sandbox.exec(["/usr/bin/python3", "-c", code], env=ENV)
    cores, *share = result.stdout.decode().split()
    assert cores == "1" or share == ["100000", "100000"]


async def test_processes_are_bounded(provider, gateway):
    bomb = """
import os, signal
for n in range(300):
    try:
        if not os.fork():
            signal.pause()
    except BlockingIOError:
        print(n, flush=True)
        os._exit(9)
signal.pause()
"""
    async with provider.open(gateway.spec(processes=60)) as sandbox:
        result = await sandbox.exec(["/usr/bin/python3", "-c", bomb], env=ENV)
    if provider.isolates:
        assert result.exit_code == 9
        assert 30 < int(result.stdout) < 60
    else:
        assert result.exit_code == -9
        assert b"more than 60 processes" in result.stderr


async def test_files_are_bounded(provider, gateway):
    script = "head -c 3000000 /dev/zero > big; ulimit -n; ulimit -c; stat -c %s big"
    async with provider.open(gateway.spec(file_mb=1, open_files=77)) as sandbox:
        result = await sandbox.exec(["bash", "-c", script], env=ENV)
    assert result.stdout.split() == [b"77", b"0", b"1048576"]


async def test_the_sum_of_files_is_bounded(provider, gateway):
    script = "for i in $(seq 60); do head -c 20000000 /dev/zero > $HOME/$i; done; exec sleep 60"
    async with provider.open(gateway.spec(disk_mb=50)) as sandbox:
        env = {**ENV, "HOME": sandbox.home}
        result = await sandbox.exec(["bash", "-c", script], env=env)
        assert (result.exit_code, result.limit) == (-9, "more than 50 MiB of disk")
        # What is there already is only measured when there comes more.
        result = await sandbox.exec(["sh", "-c", "echo on"], env=env)
        assert (result.stdout, result.limit) == (b"on\n", "")


def test_a_full_disk_is_nobodys_fault(monkeypatch, tmp_path):
    room = SimpleNamespace(f_bavail=0, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    disk = Disk(0, [str(tmp_path)])
    disk.look()
    assert disk.full
    report = {"status": 1, "over_memory": False, "over_tasks": False, "over_disk": False}
    stderr = _process.Output()
    stderr.kept += _process.MARK + json.dumps(report | {"disk_full": disk.full}).encode()
    with pytest.raises(SandboxError, match="the disk of this machine was full"):
        _process._result(_process.Output(), stderr, 0, {"argv": ["true"]})


async def test_a_shut_folder_keeps_no_command_out(provider, gateway):
    async with provider.open(gateway.spec()) as sandbox:
        await sandbox.exec(["chmod", "0", sandbox.workspace, sandbox.home], env=ENV)
        await sandbox.write({f"{sandbox.workspace}/late": "here"})
        result = await sandbox.exec(["cat", "late"], env=ENV)
    assert result.stdout == b"here", result.stderr


async def test_the_folder_is_gone_afterwards(provider, gateway):
    """Also when its modes say no, and when it is deeper than a path may be long."""
    script = """
import os
for n in range(1500):
    os.mkdir("deep-folder-name"); os.chdir("deep-folder-name")
os.chdir(os.environ["TOP"])
os.mkdir("shut"); open("shut/x", "w"); os.chmod("shut", 0)
"""
    async with provider.open(gateway.spec()) as sandbox:
        path = sandbox._folder.path
        env = {**ENV, "TOP": sandbox.workspace}
        result = await sandbox.exec(["/usr/bin/python3", "-c", script], env=env)
        assert result.exit_code == 0, result.stderr
        assert path.is_dir()
    assert not path.exists()


async def test_programs_are_seen_at_their_own_path(provider, gateway, tmp_path):
    folder = tmp_path / "pro gram"
    folder.mkdir()
    (folder / "tool").write_text("#!/bin/sh\necho works\n")
    (folder / "tool").chmod(0o755)
    async with provider.open(gateway.spec(folder)) as sandbox:
        result = await sandbox.exec([str(folder / "tool")], env=ENV)
    assert result.stdout == b"works\n"


async def test_a_missing_program_folder_is_an_error(isolating, gateway, tmp_path):
    async with isolating.open(gateway.spec(tmp_path / "gone")) as sandbox:
        with pytest.raises(SandboxError, match="gone"):
            await sandbox.exec(["true"], env=ENV)


async def test_a_killed_run_leaves_no_process_and_is_swept(
    provider, gateway, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # out of other tests' sweeps
    name = provider.name
    sleep = forever()
    script = f"""
import asyncio
from pathlib import Path
from rollout.sandbox import SandboxSpec
from rollout.sandboxes.{name} import {name.capitalize()}
async def main():
    spec = SandboxSpec(gateway_socket=Path({str(gateway.socket)!r}), gateway_port={gateway.port})
    async with {name.capitalize()}().open(spec) as sandbox:
        print(sandbox._folder.path, flush=True)
        command = "(setsid sleep {sleep} &); curl -s $0; sleep {sleep}"
        await sandbox.exec(["bash", "-c", command, sandbox.gateway], env={ENV!r})
asyncio.run(main())
"""
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    path = Path((await run.stdout.readline()).decode().strip())
    await gateway.asked.wait()
    run.kill()
    await run.wait()
    while living(sleep):  # noqa: ASYNC110 - the kernel takes them down; nobody is told when
        await asyncio.sleep(0.02)
    assert path.is_dir()
    sweep()
    assert not path.exists()
    async with type(provider)().open(gateway.spec()) as sandbox:
        assert (await sandbox.exec(["true"], env=ENV)).exit_code == 0
