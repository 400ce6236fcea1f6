"""The filter of system calls: what no program of a task needs, and what reaches the kernel's rare parts.

Namespaces and dropped capabilities already refuse most of these. The filter keeps an unprivileged program
away from code of the kernel where that was broken before, and from sockets that a network namespace does not
cover (AF_VSOCK reaches the host of a virtual machine).
"""

import errno
import struct

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
# All flags CLONE_NEW… of clone together.
_NEW_NAMESPACES = 0x7E02_0000

ARCHITECTURES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
# Name to its numbers on x86_64 and aarch64; None where an architecture has none.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "unshare": (272, 97),
    "setns": (308, 268),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "memfd_secret": (447, 447),
}
_CLONE, _CLONE3, _SOCKET, _IOCTL = (56, 220), (435, 435), (41, 198), (16, 29)
_UNIX, _INTERNET, _INTERNET_6, _NETLINK = 1, 2, 10, 16
# They put characters into the input of a terminal.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


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
        _do(_JUMP_ANY_BIT, _NEW_NAMESPACES, 0, 1),
        _refuse(errno.EPERM),
        _do(_RETURN, _ALLOW),
    ]


def _socket_rules() -> list[bytes]:
    """Rules that allow of netlink only routes, which programs ask for their own addresses."""
    return [
        _argument(0),
        _do(_JUMP_EQUAL, _UNIX, 5, 0),
        _do(_JUMP_EQUAL, _INTERNET, 4, 0),
        _do(_JUMP_EQUAL, _INTERNET_6, 3, 0),
        _do(_JUMP_EQUAL, _NETLINK, 0, 3),
        _argument(2),
        _do(_JUMP_EQUAL, 0, 0, 1),
        _do(_RETURN, _ALLOW),
        _refuse(errno.EAFNOSUPPORT),
    ]


def _ioctl_rules() -> list[bytes]:
    return [
        _argument(1),
        _do(_JUMP_EQUAL, _TIOCSTI, 1, 0),
        _do(_JUMP_EQUAL, _TIOCLINUX, 0, 1),
        _refuse(errno.EPERM),
        _do(_RETURN, _ALLOW),
    ]
