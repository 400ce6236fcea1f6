"""The filter of system calls.

It refuses those that no program of a task needs, or that reach rare parts of the kernel.

Namespaces and dropped capabilities already refuse most of these. The filter keeps an unprivileged program
away from code of the kernel where that was broken before, and from sockets that a network namespace does not
cover (AF_VSOCK reaches the host of a virtual machine).
"""

import errno
import struct

from services.common.sandboxes.refused_calls import (
    INTERNET,
    INTERNET_6,
    NETLINK,
    NEW_NAMESPACES,
    REFUSED,
    SIBLING,
    TIOCLINUX,
    TIOCSTI,
    UNIX,
)

# Instructions of classic BPF (linux/bpf_common.h) with constant operands.
_LOAD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
# Answers of a filter (linux/seccomp.h); an error number is added to the last one.
_ALLOW = 0x7FFF_0000
_KILL_PROCESS = 0x8000_0000
_REFUSE = 0x0005_0000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
# Numbers with this bit are those of the x32 ABI, by which a list of x86_64 could be passed by.
_X32_BIT = 0x4000_0000

ARCHITECTURES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_CLONE, _CLONE3, _SOCKET, _IOCTL = (56, 220), (435, 435), (41, 198), (16, 29)


def _do(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _refuse(number: int) -> bytes:
    return _do(_RETURN, _REFUSE | number)


def _argument(index: int) -> bytes:
    """Its lower half: the kernel looks at no more of those that are checked here."""
    return _do(_LOAD, _ARGUMENTS + 8 * index)


def filter_for(machine: str) -> bytes:
    """The program for `machine`, a key of ARCHITECTURES. Raises KeyError for another one."""
    column = list(ARCHITECTURES).index(machine) if machine in ARCHITECTURES else -1
    if column < 0:
        raise KeyError(machine)
    parts = [
        _do(_LOAD, _ARCHITECTURE),
        _do(_JUMP_EQUAL, ARCHITECTURES[machine], 1, 0),
        _do(_RETURN, _KILL_PROCESS),
        _do(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        parts += [_do(_JUMP_AT_LEAST, _X32_BIT, 0, 1), _refuse(errno.ENOSYS)]
    for numbers in REFUSED.values():
        number = numbers[column]
        if number is not None:
            parts += [_do(_JUMP_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    # Its arguments lie in memory, where no filter sees them: programs fall back to clone.
    parts += [_do(_JUMP_EQUAL, _CLONE3[column], 0, 1), _refuse(errno.ENOSYS)]
    parts += _when(_CLONE[column], _clone_rules())
    parts += _when(_SOCKET[column], _socket_rules())
    parts += _when(_IOCTL[column], _ioctl_rules())
    return b"".join([*parts, _do(_RETURN, _ALLOW)])


def _when(number: int, rules: list[bytes]) -> list[bytes]:
    """The rules end the filter; other calls jump over them."""
    return [_do(_JUMP_EQUAL, number, 0, len(rules)), *rules]


def _clone_rules() -> list[bytes]:
    return [
        _argument(0),
        _do(_JUMP_ANY_BIT, NEW_NAMESPACES | SIBLING, 0, 1),
        _refuse(errno.EPERM),
        _do(_RETURN, _ALLOW),
    ]


def _socket_rules() -> list[bytes]:
    """Rules that allow of netlink only routes, which programs ask for their own addresses."""
    return [
        _argument(0),
        _do(_JUMP_EQUAL, UNIX, 5, 0),
        _do(_JUMP_EQUAL, INTERNET, 4, 0),
        _do(_JUMP_EQUAL, INTERNET_6, 3, 0),
        _do(_JUMP_EQUAL, NETLINK, 0, 3),
        _argument(2),
        _do(_JUMP_EQUAL, 0, 0, 1),
        _do(_RETURN, _ALLOW),
        _refuse(errno.EAFNOSUPPORT),
    ]


def _ioctl_rules() -> list[bytes]:
    return [
        _argument(1),
        _do(_JUMP_EQUAL, TIOCSTI, 1, 0),
        _do(_JUMP_EQUAL, TIOCLINUX, 0, 1),
        _refuse(errno.EPERM),
        _do(_RETURN, _ALLOW),
    ]
