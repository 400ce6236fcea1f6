"""Limits the memory and the files of a sandbox where no control group does: looks often, and kills.

A process that allocates faster than the looks come gets further than the limit, by what it allocates in
between.
"""

import os
from pathlib import Path

from services.common.sandboxes.bubblewrap.launcher.box import Box

# A process fills some hundred megabytes in that time; each look reads all its processes.
POLL_SECONDS = 0.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def excess(box: Box) -> str:
    """ "memory", "files" or "" where the sandbox is within its limits.

    The first process's root is this process's way in; `/proc` and the mounts there cannot be replaced from
    inside.
    """
    root = Path(f"/proc/{box.first_process}/root")
    try:
        used, files = _mounted(root, box.mounts)
        if files > box.limits["files"]:
            return "files"
        return "memory" if used + _private_bytes(root) > box.limits["memory_bytes"] else ""
    except OSError:
        # It is about to end.
        return ""


def can_look(box: Box) -> bool:
    """A launcher that is root without CAP_SYS_PTRACE has no way in."""
    try:
        _mounted(Path(f"/proc/{box.first_process}/root"), box.mounts)
    except OSError:
        return False
    return True


def _mounted(root: Path, folders: list[str]) -> tuple[int, int]:
    """Bytes and inodes in use."""
    used = files = 0
    for folder in folders:
        status = os.statvfs(f"{root}{folder}")
        used += (status.f_blocks - status.f_bfree) * status.f_frsize
        files += status.f_files - status.f_ffree
    return used, files


def _private_bytes(root: Path) -> int:
    total = 0
    for entry in os.scandir(root / "proc"):
        if entry.name.isdecimal():
            try:
                pages = Path(entry.path, "statm").read_bytes().split()
            except OSError:
                continue
            # Resident less shared: libraries count for none, files in memory are counted by their folders.
            total += (int(pages[1]) - int(pages[2])) * _PAGE_BYTES
    return total
