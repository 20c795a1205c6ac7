"""Attempts to get out, each made from inside. They must all fail."""

import asyncio
import json
import os
import platform
import socket
from pathlib import Path

import pytest

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/home/agent"}


async def inside(sandbox, script: str, *arguments: object):
    """What a Python script prints as JSON when it runs in the sandbox."""
    argv = ["/usr/bin/python3", "-c", script, *map(str, arguments)]
    result = await sandbox.exec(argv, env=ENV)
    assert result.exit_code == 0, result.stderr.decode(errors="replace")
    return json.loads(result.stdout)


def state(pid: int) -> str:
    """Of a process on the host: S sleeps, Z has been killed."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


async def shell(sandbox, script: str, *arguments: object) -> tuple[int, str]:
    result = await sandbox.exec(["bash", "-c", script, *map(str, arguments)], env=ENV)
    return result.exit_code, result.stdout.decode(errors="replace")


async def test_host_files_are_not_there(isolating, gateway, tmp_path):
    secret = tmp_path / "runs" / "ground_truth.json"
    secret.parent.mkdir()
    secret.write_text("the answer")
    store = Path(__file__).resolve()
    async with isolating.open(gateway.spec()) as sandbox:
        for path in (secret, store, Path.home(), "/etc/shadow", "/root/.ssh", "/var/log", "/opt"):
            assert await shell(sandbox, 'cat "$0" "$0"/* 2>/dev/null', path) == (1, "")
        for path in (f"/proc/1/root{secret}", f"/proc/1/cwd{secret}", f"/proc/self/root{secret}"):
            assert await shell(sandbox, 'cat "$0" 2>/dev/null', path) == (1, "")


async def test_accounts_and_names_of_the_host_are_not_there(isolating, gateway):
    async with isolating.open(gateway.spec()) as sandbox:
        _, accounts = await shell(sandbox, "cut -d: -f1 /etc/passwd; cut -d: -f1 /etc/group")
        assert accounts.split() == ["root", "agent"] * 2
        assert await shell(sandbox, "test -r /etc/shadow") == (1, "")
        assert (await shell(sandbox, "hostname"))[1].strip() == "sandbox"
        assert (await shell(sandbox, "id -un"))[1].strip() == "agent"


async def test_only_its_own_folders_can_be_written(isolating, gateway, tmp_path):
    program = tmp_path / "program"
    program.mkdir(mode=0o777)
    script = """
import json, os, sys
def writable(folder):
    try:
        path = folder + "/probe"
        open(path, "w").close()
        os.remove(path)
        return True
    except OSError:
        return False
found = []
for top, folders, _ in os.walk("/"):
    # /proc/<pid> and the host's programs are large and of one kind.
    folders[:] = [f for f in folders if not (top == "/" and f in ("proc", "sys", "usr"))]
    if writable(top):
        found.append(top)
        folders[:] = []
found += [f for f in ("/usr", "/usr/bin", "/usr/local", "/proc/sys/kernel") if writable(f)]
print(json.dumps(sorted(found)))
"""
    async with isolating.open(gateway.spec(program)) as sandbox:
        found = await inside(sandbox, script)
    # /dev/mqueue is docker's: private to the container, and gone with it.
    assert set(found) - {"/dev/mqueue", "/run/lock", "/var/tmp", "/var/lock"} == {
        "/dev/shm",
        "/home/agent",
        "/tmp",
        "/workspace",
    }
    assert list(program.iterdir()) == []


async def test_another_sandbox_is_out_of_reach(isolating, gateway):
    async with isolating.open(gateway.spec()) as one, isolating.open(gateway.spec()) as other:
        for place in ("/workspace", "/home/agent", "/tmp", "/dev/shm"):
            await one.write({f"{place}/secret": "one's own"})
            assert await shell(other, f"cat {place}/secret 2>/dev/null") == (1, "")
            assert await other.read(f"{place}/secret") is None
        path = one._folder.path
        assert (await shell(other, 'ls "$0" 2>/dev/null', path)) == (2, "")
        assert one._folder.uid != other._folder.uid or os.getuid() != 0


async def test_the_hosts_environment_is_not_there(isolating, gateway, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-host-secret")
    script = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; true"
    neighbour = await asyncio.create_subprocess_exec("sleep", "600")  # inherits the key
    try:
        async with isolating.open(gateway.spec()) as sandbox:
            _, text = await shell(sandbox, script)
    finally:
        neighbour.kill()
        await neighbour.wait()
    assert "PATH=/usr/bin:/bin" in text
    assert "sk-host-secret" not in text
    assert "PYTEST" not in text


async def test_host_processes_are_neither_seen_nor_killed(isolating, gateway):
    victim = await asyncio.create_subprocess_exec("sleep", "600")
    script = """
import json, os
print(json.dumps(sorted(int(name) for name in os.listdir("/proc") if name.isdigit())))
"""
    try:
        async with isolating.open(gateway.spec()) as sandbox:
            pids = await inside(sandbox, script)
            assert pids[0] == 1
            assert len(pids) == 2
            await shell(sandbox, "kill -9 $0", victim.pid)
            await shell(sandbox, "kill -9 -1")
        assert state(victim.pid) == "S"
    finally:
        victim.kill()
        await victim.wait()


async def test_no_network_but_the_gateway(isolating, gateway):
    script = """
import json, socket, sys
def tried(family, address):
    with socket.socket(family) as s:
        s.settimeout(5)
        try:
            s.connect(address)
            return "connected"
        except OSError as error:
            return type(error).__name__
port, name = int(sys.argv[1]), sys.argv[2]
hosts = ["127.0.0.1", "127.0.0.2", "192.0.2.1", "169.254.169.254", "172.17.0.1", *sys.argv[3:]]
results = {host: tried(socket.AF_INET, (host, port)) for host in hosts}
results["::1"] = tried(socket.AF_INET6, ("::1", port))
results["abstract"] = tried(socket.AF_UNIX, "\\0" + name)
try:
    results["name"] = socket.gethostbyname("example.com")
except OSError as error:
    results["name"] = "failed"
results["interfaces"] = [name for _, name in socket.if_nameindex() if name == "lo" or "eth" in name]
print(json.dumps(results))
"""
    heard = []
    name = f"anyharness-test-{os.getpid()}"
    server = await asyncio.start_server(lambda *_: heard.append("tcp"), "0.0.0.0", 0)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + name)
    abstract = await asyncio.start_unix_server(lambda *_: heard.append("unix"), sock=listener)
    async with server, abstract, isolating.open(gateway.spec()) as sandbox:
        results = await inside(sandbox, script, server.sockets[0].getsockname()[1], name)
    assert results.pop("interfaces") == ["lo"]
    assert results.pop("name") == "failed"
    assert "connected" not in results.values()
    assert heard == []


async def test_only_the_socket_of_the_gateways_folder_is_there(isolating, gateway):
    async with isolating.open(gateway.spec()) as sandbox:
        _, names = await shell(sandbox, "ls -A /run/anyharness")
        assert names.split() == ["gateway.sock", "supervisor.py"]
        assert (await shell(sandbox, "rm /run/anyharness/gateway.sock 2>/dev/null"))[0] == 1
    assert gateway.socket.is_socket()


async def test_no_privileges_and_none_to_be_had(isolating, gateway):
    script = """
grep -E '^(NoNewPrivs|CapEff|CapPrm|CapAmb)' /proc/self/status
unshare --user --map-root-user --mount sh -c 'mount -o remount,rw,bind /usr' 2>/dev/null && echo remounted
unshare --user --map-root-user --mount sh -c 'umount /usr' 2>/dev/null && echo unmounted
mknod /tmp/sda b 8 0 2>/dev/null && echo device
setpriv --reuid 0 true 2>/dev/null && echo root
true
"""
    async with isolating.open(gateway.spec()) as sandbox:
        _, text = await shell(sandbox, script)
    zero = "0" * 16
    status = dict(line.split(":\t") for line in text.strip().splitlines())
    assert status == {"NoNewPrivs": "1", "CapEff": zero, "CapPrm": zero, "CapAmb": zero}


async def test_what_no_namespace_covers_is_filtered(isolating, gateway):
    script = """
import ctypes, json, socket
libc = ctypes.CDLL(None, use_errno=True)
def refused(number, *arguments):
    ctypes.set_errno(0)
    return libc.syscall(number, *arguments) == -1 and ctypes.get_errno() in (1, 38)
JOIN_SESSION_KEYRING = 1
calls = {"keyctl": refused(250, JOIN_SESSION_KEYRING, None), "io_uring": refused(425, 1, None)}
try:
    socket.socket(socket.AF_VSOCK).connect((2, 1024))
except OSError as error:
    calls["vsock"] = error.errno in (1, 97)
print(json.dumps(calls))
"""
    if platform.machine() != "x86_64":
        pytest.skip("the numbers are those of x86-64")
    async with isolating.open(gateway.spec()) as sandbox:
        assert await inside(sandbox, script) == dict.fromkeys(("keyctl", "io_uring", "vsock"), True)


async def test_no_open_file_of_the_host_comes_along(isolating, gateway, tmp_path):
    secret = os.open(tmp_path / "secret", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(secret, True)
    script = 'import json, os; print(json.dumps(len(os.listdir("/proc/self/fd"))))'
    try:
        async with isolating.open(gateway.spec()) as sandbox:
            assert await inside(sandbox, script) == 4  # three streams, and the listing itself
    finally:
        os.close(secret)


async def test_the_supervisor_can_be_neither_killed_nor_read(isolating, gateway):
    script = """
kill -9 1; kill -STOP 1; kill -TERM 1
cat /proc/1/environ /proc/1/mem 2>/dev/null | head -c 1
ls /proc/1/fd 2>/dev/null
curl -sS --max-time 20 http://127.0.0.1:18080/
"""
    async with isolating.open(gateway.spec()) as sandbox:
        assert await shell(sandbox, script) == (0, "hello")


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/home/agent"])
async def test_traps_in_its_folders_do_not_catch_the_host(isolating, gateway, tmp_path, place):
    secret = tmp_path / "secret"
    secret.write_text("host's own")
    traps = f"""
cd {place}
ln -s /etc/shadow shadow; ln -s {secret} secret; ln -s {tmp_path} out; ln -s / root; ln -s . self
mkfifo fifo; ln -s /dev/zero zero; ln -s loop loop
/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
"""
    async with isolating.open(gateway.spec()) as sandbox:
        assert (await shell(sandbox, traps))[0] == 0
        names = [
            "shadow",
            "secret",
            "out/secret",
            f"root{secret}",
            "self/fifo",
            "fifo",
            "zero",
            "loop",
        ]
        for name in [*names, "socket"]:
            assert await sandbox.read(f"{place}/{name}") is None
        for name in ["shadow", "secret", "fifo", "zero", "loop", "socket", "self"]:
            await sandbox.write({f"{place}/{name}": "plain"})
            assert await sandbox.read(f"{place}/{name}") == b"plain"
        await sandbox.write({f"{place}/out/planted": "x"})
        assert await sandbox.read(f"{place}/out/planted") == b"x"
        assert (await shell(sandbox, f"mkdir -p {place}/full/of/things; echo > {place}/file"))[
            0
        ] == 0
        await sandbox.write({f"{place}/full": "plain", f"{place}/file/below": "plain"})
        assert await sandbox.read(f"{place}/full") == b"plain"
        assert await sandbox.read(f"{place}/file/below") == b"plain"
    assert secret.read_text() == "host's own"
    assert not (tmp_path / "planted").exists()
