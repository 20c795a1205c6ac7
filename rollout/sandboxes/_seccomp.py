"""A system call filter for what namespaces leave open (seccomp(2), BPF of bpf(4)).

Kernel keyrings and sockets to a virtual machine's host (vsock) belong to no namespace; io_uring makes
sockets past any filter; bpf and perf_event_open have no use inside. All else is allowed: the filter is
no policy for programs, only the rest of the wall.
"""

from __future__ import annotations

import errno
import platform
import struct

__all__ = ["system_call_filter"]

# linux/audit.h's name of the machine, `socket`, then what is refused: add_key, request_key, keyctl,
# perf_event_open, bpf, io_uring_setup.
MACHINES = {
    "x86_64": (0xC000003E, 41, (248, 249, 250, 298, 321, 425)),
    "aarch64": (0xC00000B7, 198, (217, 218, 219, 241, 280, 425)),
}
FAMILIES = (1, 2, 10, 16)
"""Unix, IPv4, IPv6 and netlink sockets: each of them within the sandbox's own network namespace."""

X32_BIT = 0x40000000
LOAD, IF_EQUAL, IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data (little-endian)."""
ALLOW = 0x7FFF0000


def system_call_filter(machine: str = platform.machine()) -> bytes:
    """An array of struct sock_filter; empty for a machine that we have no numbers of."""
    if machine not in MACHINES:
        return b""
    audit, socket, refused = MACHINES[machine]
    code = [
        _step(LOAD, MACHINE),
        _step(IF_EQUAL, audit, then=1),
        _step(RETURN, _fail(errno.ENOSYS)),
        _step(LOAD, NUMBER),
        _step(IF_AT_LEAST, X32_BIT, otherwise=1),
        _step(RETURN, _fail(errno.ENOSYS)),
    ]
    for number in refused:
        code += [_step(IF_EQUAL, number, otherwise=1), _step(RETURN, _fail(errno.EPERM))]
    code += [
        _step(IF_EQUAL, socket, otherwise=len(FAMILIES) + 2),
        _step(LOAD, FIRST_ARGUMENT),
        *(_step(IF_EQUAL, f, then=len(FAMILIES) - n) for n, f in enumerate(FAMILIES)),
        _step(RETURN, _fail(errno.EAFNOSUPPORT)),
        _step(RETURN, ALLOW),
    ]
    return b"".join(code)


def _step(code: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)


def _fail(number: int) -> int:
    return 0x00050000 | number
