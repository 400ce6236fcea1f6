"""The output of a command, of which the first and the last part are kept."""

from collections import deque
from typing import BinaryIO


class KeptOutput:
    """A command that writes gigabytes costs time and no memory."""

    def __init__(self, max_bytes: int) -> None:
        self.head = bytearray()
        self.total = 0
        self._most_head = self._most_tail = max_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0

    @property
    def tail(self) -> bytes:
        return b"".join(self._tail)[-self._most_tail :] if self._most_tail else b""

    def add(self, part: bytes) -> None:
        self.total += len(part)
        room = self._most_head - len(self.head)
        if room > 0:
            self.head += part[:room]
            part = part[room:]
        if not part:
            return
        self._tail.append(part)
        self._tail_bytes += len(part)
        # A part goes only where the others are enough without it.
        while self._tail_bytes - len(self._tail[0]) >= self._most_tail:
            self._tail_bytes -= len(self._tail.popleft())


class SpooledOutput(KeptOutput):
    """Writes all of it to a file, until it is too much."""

    def __init__(self, into: BinaryIO, max_bytes: int) -> None:
        super().__init__(0)
        self._into, self._most = into, max_bytes

    def add(self, part: bytes) -> None:
        self.total += len(part)
        if self.total <= self._most:
            self._into.write(part)
