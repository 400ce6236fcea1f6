"""Counts from outside how often files of a sandbox are used: nothing inside can hide that it opened one."""

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from posixpath import basename, dirname

from services.common.sandboxes.bubblewrap.launcher import syscalls

# Of each event: its watch, kind, cookie, and the length of the name that follows (inotify(7)).
_HEAD = struct.Struct("iIII")
_READ_BYTES = 65536


@dataclass(slots=True)
class UsesWatch:
    """`events` is a file of inotify; `folder` is watched by it, a path inside."""

    events: int
    folder: str = ""

    def begin(self, root: str, files: Sequence[str]) -> bool:
        """Watches the folder of these files, which is that of the first. False where it is not there."""
        folder = dirname(files[0])
        if self.folder != folder:
            with suppress(OSError):
                syscalls.watch_uses(self.events, f"{root}{folder}")
                self.folder = folder
        return self.folder == folder

    def count(self, files: Sequence[str]) -> int:
        """How often they were opened, closed, made or replaced since the last count.

        Writes count for nothing by themselves: the kernel tells of several in a row as one.
        """
        names = {basename(file) for file in files}
        return sum(
            kind & syscalls.IN_Q_OVERFLOW > 0 or (name in names and not kind & syscalls.IN_MODIFY)
            for kind, name in self._events()
        )

    def close(self) -> None:
        os.close(self.events)

    def _events(self) -> Iterator[tuple[int, str]]:
        while True:
            try:
                content = os.read(self.events, _READ_BYTES)
            except BlockingIOError:
                return
            place = 0
            while place < len(content):
                _, kind, _, length = _HEAD.unpack_from(content, place)
                place += _HEAD.size
                yield kind, content[place : place + length].rstrip(b"\0").decode("utf-8", "replace")
                place += length


def open_watch() -> UsesWatch:
    """Raises OSError."""
    return UsesWatch(syscalls.open_inotify())
