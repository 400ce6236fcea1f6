"""The filter of system calls as Docker and podman take it: the same calls as the process engine refuses."""

import errno
import json
from typing import Any

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

# Others, such as the 32-bit calls of x86, are not to be called at all.
_ARCHITECTURES = ["SCMP_ARCH_X86_64", "SCMP_ARCH_X32", "SCMP_ARCH_AARCH64"]
_REFUSE = "SCMP_ACT_ERRNO"
_LOWER_HALF = 0xFFFF_FFFF

Rule = dict[str, Any]


def profile(machine: str) -> str:
    """The filter for x86_64 or aarch64, as JSON."""
    column = 1 if machine == "aarch64" else 0
    architectures = _ARCHITECTURES[2:] if column else _ARCHITECTURES[:2]
    names = [name for name, numbers in REFUSED.items() if numbers[column] is not None]
    rules = [
        _rule(names, errno.EPERM),
        # Its arguments lie in memory, where no filter sees them: programs fall back to clone.
        _rule(["clone3"], errno.ENOSYS),
        *(_rule(["clone"], errno.EPERM, _bits(0, flag, flag)) for flag in _flags(NEW_NAMESPACES | SIBLING)),
        *(_rule(["socket"], errno.EAFNOSUPPORT, each) for each in _families()),
        _rule(["socket"], errno.EAFNOSUPPORT, _bits(0, _LOWER_HALF, NETLINK), _compared(2, "NE", 0)),
        *(_rule(["ioctl"], errno.EPERM, _bits(1, _LOWER_HALF, call)) for call in (TIOCSTI, TIOCLINUX)),
    ]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "architectures": architectures, "syscalls": rules})


def _rule(names: list[str], error: int, *arguments: Rule) -> Rule:
    return {"names": names, "action": _REFUSE, "errnoRet": error, "args": list(arguments)}


def _compared(index: int, how: str, value: int) -> Rule:
    return {"index": index, "value": value, "op": f"SCMP_CMP_{how}"}


def _bits(index: int, mask: int, value: int) -> Rule:
    return {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}


def _flags(mask: int) -> list[int]:
    return [1 << bit for bit in range(32) if mask & 1 << bit]


def _families() -> list[Rule]:
    """All but the allowed ones. A rule holds where all its comparisons do, so each family has its own."""
    allowed = {UNIX, INTERNET, INTERNET_6, NETLINK}
    refused = [family for family in range(max(allowed)) if family not in allowed]
    return [*(_compared(0, "EQ", family) for family in refused), _compared(0, "GT", max(allowed))]
