"""System calls that Python 3.11 does not offer. Standard library only: the launcher imports no package."""

import ctypes
import os

# From linux/prctl.h and linux/seccomp.h.
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

# From linux/sched.h.
CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

# From linux/capability.h: two words of 32 bits, of which today's kernels use 41.
_CAPABILITY_VERSION_3 = 0x2008_0522
_MAX_CAPABILITIES = 64

# From linux/inotify.h.
IN_MODIFY = 0x0000_0002
IN_Q_OVERFLOW = 0x0000_4000
# Opened, closed with and without the right to write, moved to the folder, made in it.
_USES = 0x0000_0020 | 0x0000_0008 | 0x0000_0010 | 0x0000_0080 | 0x0000_0100
_IN_ONLYDIR = 0x0100_0000
_IN_DONT_FOLLOW = 0x0200_0000

_libc = ctypes.CDLL(None, use_errno=True)


class _FilterProgram(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def _checked(result: int, name: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def prctl(option: int, argument: int) -> None:
    _checked(_libc.prctl(option, ctypes.c_ulong(argument), 0, 0, 0), f"prctl {option}")


def setns(file: int, kinds: int) -> None:
    _checked(_libc.setns(file, kinds), "setns")


def drop_capabilities() -> None:
    """All sets, for good: nothing that is run later gains one."""
    for capability in range(_MAX_CAPABILITIES):
        # The first one that this kernel does not have ends the list.
        if _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    _checked(_libc.capset(header, none), "capset")
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def install_filter(program: bytes) -> None:
    """`program`: instructions of eight bytes. Needs NO_NEW_PRIVS."""
    written = _FilterProgram(len(program) // 8, program)
    result = _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(written), 0, 0)
    _checked(result, "seccomp")


def open_inotify() -> int:
    return _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1")


def watch_uses(events: int, folder: str) -> None:
    kinds = IN_MODIFY | _USES | _IN_ONLYDIR | _IN_DONT_FOLLOW
    added = _libc.inotify_add_watch(events, folder.encode(), ctypes.c_uint32(kinds))
    _checked(added, "inotify_add_watch")


def die_with(parent: int) -> None:
    """The caller is killed when its parent ends; where that has happened already, it ends here."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(125)
