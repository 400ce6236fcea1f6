"""Limits the memory and the files of a sandbox where no control group does: looks often, and kills.

A process that allocates faster than the looks come gets further than the limit, by what it allocates in
between.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from services.common.sandboxes.bubblewrap.launcher.box import Box

# A process fills some hundred megabytes in that time; each look reads all its processes.
POLL_SECONDS = 0.05
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def excess(box: Box) -> str:
    """ "memory", "files" or "" where the sandbox is within its limits.

    The first process's root is this process's way in; `/proc` there cannot be replaced from inside.
    """
    try:
        used, files = _in_use(box.watched)
        if files > box.limits["files"]:
            return "files"
        private = _private_bytes(Path(f"/proc/{box.first_process}/root"))
        return "memory" if used + private > box.limits["memory_bytes"] else ""
    except OSError:
        # It is about to end.
        return ""


def watch(box: Box) -> bool:
    """Before its first command: a folder above a mount may move later, and its path be another's.

    False for a launcher that is root without CAP_SYS_PTRACE: it has no way in.
    """
    try:
        for folder in box.mounts:
            box.watched.append(os.open(f"/proc/{box.first_process}/root{folder}", os.O_PATH))
    except OSError:
        while box.watched:
            os.close(box.watched.pop())
    return bool(box.watched)


def _in_use(mounts: Sequence[int]) -> tuple[int, int]:
    """Bytes and inodes."""
    used = files = 0
    for mount in mounts:
        status = os.fstatvfs(mount)
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
