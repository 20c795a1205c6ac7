"""The first process of a sandbox: it runs one command, and takes everything down with it.

Runs by itself (`python3 -I -S -X utf8 _supervisor.py`): standard library only, any Python from 3.8.
Stdin brings one line of JSON, the order; after that, its end means that the host is gone or has changed
its mind, and everything is killed. The last line of stderr is the report. Where it is process 1, no
process can outlive it; elsewhere it is a subreaper (prctl(2)), so that orphans come back to it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, NamedTuple, NoReturn

MARK = b"\n\0sandbox-report "
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER = 4, 22, 36
SECCOMP_MODE_FILTER = 2
PAGE = resource.getpagesize()
BRIDGES = 512
FULL = 1 << 20
"""Bytes left on a disk that takes nothing more."""


class Process(NamedTuple):
    """One line of the process table."""

    parent: int
    threads: int
    resident: int


class Watch:
    """Kills everything when it uses more than it may, and remembers why."""

    def __init__(self, memory: int, tasks: int, disk: Disk) -> None:
        self.memory = memory
        self.tasks = tasks
        self.disk = disk
        self.over_memory = False
        self.over_tasks = False

    def run(self) -> None:
        while not (self.over_memory or self.over_tasks or self.disk.over):
            started = time.monotonic()
            self.look()
            # At most a tenth of a core, however long the process table is.
            time.sleep(max(0.2, 10 * (time.monotonic() - started)))
        kill_forever()

    def look(self) -> None:
        self.disk.look()
        table = members()
        self.over_tasks = 0 < self.tasks < sum(each.threads for each in table.values())
        # Resident memory counts shared pages once a process: cheap, and never too low.
        if self.memory and self.memory < sum(each.resident for each in table.values()):
            self.over_memory = self.memory < sum(map(proportional, table, table.values()))


class Disk:
    """What the command's folders hold, measured only once their file system has lost that much."""

    def __init__(self, limit: int, folders: list[str]) -> None:
        self.limit = limit
        self.folders = folders
        self.over = False
        self.full = False
        self.most = self.free()
        self.suspicious = threading.Event()

    def free(self) -> int:
        found = os.statvfs(self.folders[0])
        return found.f_bavail * found.f_frsize

    def look(self) -> None:
        free = self.free()
        self.full = self.full or free < FULL
        self.most = max(self.most, free)
        if 0 < self.limit < self.most - free:
            self.suspicious.set()
        else:
            self.suspicious.clear()

    def run(self) -> None:
        """In a thread of its own: a large tree takes a while."""
        while self.suspicious.wait():
            started = time.monotonic()
            self.over = self.over or self.limit < self.used()
            time.sleep(max(0.2, 10 * (time.monotonic() - started)))

    def used(self) -> int:
        """Bytes; `du` finds its way through trees of any depth."""
        try:
            told = subprocess.run(
                ["du", "--summarize", "--block-size=1", "--total", "--", *self.folders],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin"},
                check=False,
            )
            return int(told.stdout.split(b"\n")[-2].split()[0])
        except (OSError, IndexError):  # there is no process left for it: it is asked again
            return 0


def proportional(pid: int, process: Process) -> int:
    """Bytes of a process, pages that it shares divided by those who share them."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        for line in file:
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return process.resident


def members() -> dict[int, Process]:
    """Every other process of the sandbox."""
    table: dict[int, Process] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        # A process may end while we look; its name may hold spaces and brackets.
        with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
            table[int(name)] = Process(int(fields[1]), int(fields[17]), int(fields[21]) * PAGE)
    me = os.getpid()
    if me == 1:
        table.pop(1, None)
        return table
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(pid)
    found, left = {}, [me]
    while left:
        for pid in children.get(left.pop(), ()):
            found[pid] = table[pid]
            left.append(pid)
    return found


def kill_all() -> None:
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return
    for pid in members():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def kill_forever() -> NoReturn:
    """Until the main thread sees the command's end and leaves: a fork bomb needs more than one blow."""
    while True:
        kill_all()
        time.sleep(0.02)


def reap_all() -> None:
    """Kill and reap until no other process is left."""
    while True:
        kill_all()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def watch_host() -> None:
    while os.read(0, 4096):
        pass
    kill_forever()


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(65536)
            if not data:
                break
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def bridge(client: socket.socket, path: str, slots: threading.Semaphore) -> None:
    refused = contextlib.suppress(OSError, RuntimeError)  # by the gateway; for want of a thread
    with client, socket.socket(socket.AF_UNIX) as gateway, refused:
        gateway.connect(path)
        back = threading.Thread(target=pump, args=(gateway, client), daemon=True)
        back.start()
        pump(client, gateway)
        back.join()
    slots.release()


def forward(listener: socket.socket, path: str) -> None:
    """Pipe each connection to the gateway's Unix socket, so many at a time."""
    slots = threading.Semaphore(BRIDGES)
    while True:
        slots.acquire()
        try:
            client, _ = listener.accept()
            threading.Thread(target=bridge, args=(client, path, slots), daemon=True).start()
        except (OSError, RuntimeError):  # out of files, or of threads: the next one waits
            slots.release()
            time.sleep(0.05)


def prctl(option: int, value: int, argument: Any = None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), argument, None, None):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def filter_system_calls(program: bytes) -> None:
    class FilterProgram(ctypes.Structure):  # struct sock_fprog
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(FilterProgram(len(program) // 8, program))
    )


def become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def execute(order: dict[str, Any]) -> NoReturn:
    """In the child: turn into the command. Raises OSError or ValueError when that can't be."""
    os.setsid()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, at its start
        signal.signal(ignored, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(order["cwd"])
    if order["cpus"]:
        cores = sorted(os.sched_getaffinity(0))
        first = os.getpid()  # others begin at other cores
        os.sched_setaffinity(0, {cores[(first + n) % len(cores)] for n in range(order["cpus"])})
    for name, wanted in order["rlimits"].items():
        kind = getattr(resource, "RLIMIT_" + name)
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))
    os.execvpe(order["argv"][0], order["argv"], order["env"])


def start(order: dict[str, Any]) -> int:
    """Process id of the command. Raises OSError when it could not be started."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            execute(order)
        except Exception as error:
            reason = getattr(error, "strerror", None) or str(error)
            os.write(tell, reason.encode()[:1000] or b"unknown")
        finally:
            os._exit(127)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        reason = pipe.read().decode(errors="replace")
    if reason:
        raise OSError(reason)
    return pid


def wait(pid: int) -> int:
    """Reap whatever ends, until the command does."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return status


def oom_killed() -> bool:
    """Whether the kernel killed a process of this container for its memory (cgroup v2, or v1)."""
    for path in ("memory.events", "memory/memory.oom_control"):
        with contextlib.suppress(OSError), open("/sys/fs/cgroup/" + path) as file:
            fields = dict(line.split() for line in file)
            return int(fields.get("oom_kill", "0")) > 0
    return False


def report(**fields: Any) -> None:
    data = MARK + json.dumps(fields).encode()
    while data:
        data = data[os.write(2, data) :]


def read_order() -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(0, 1 << 16)
        if not data:
            sys.exit("the host closed the connection before it gave an order")
        line += data
    order: dict[str, Any] = json.loads(line)
    return order


def main() -> None:
    order = read_order()
    if order["uid"]:
        become(order["uid"])
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    os.umask(0o022)
    if order["seccomp"]:
        filter_system_calls(bytes.fromhex(order["seccomp"]))
    threads = [threading.Thread(target=watch_host, daemon=True)]
    if order["socket"]:
        listener = socket.create_server(("127.0.0.1", order["port"]), backlog=128)
        threads.append(
            threading.Thread(target=forward, args=(listener, order["socket"]), daemon=True)
        )
    try:
        pid = start(order)
    except OSError as error:
        report(error=str(error))
        return
    disk = Disk(order["disk"], order["folders"])
    watch = Watch(order["memory"], order["tasks"], disk)
    threads += [threading.Thread(target=each.run, daemon=True) for each in (watch, disk)]
    for thread in threads:
        thread.start()
    status = wait(pid)
    reap_all()
    report(
        status=-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
        over_memory=watch.over_memory or (order["container"] and oom_killed()),
        over_tasks=watch.over_tasks,
        over_disk=disk.over,
        disk_full=disk.full,
    )


if __name__ == "__main__":
    main()
