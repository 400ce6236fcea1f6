"""Frames in the pipes of a process: a kind, the length of the content, the content."""

import struct
from typing import IO

_HEAD = struct.Struct("<cQ")
HEAD_BYTES = _HEAD.size
# More than any frame of a service has. A process that reads hostile files may write any length.
MAX_BYTES = 1024 * 1024 * 1024


class BrokenFrame(EOFError):
    """The other end stopped in the middle of a frame, or its content is longer than allowed."""


def head_of(kind: bytes, *parts: bytes) -> bytes:
    return _HEAD.pack(kind, sum(map(len, parts)))


def read_head(head: bytes, max_bytes: int = MAX_BYTES) -> tuple[bytes, int]:
    """Kind and length. Raises `BrokenFrame`."""
    if len(head) < HEAD_BYTES:
        raise BrokenFrame("a frame ended in its head")
    kind, length = _HEAD.unpack(head)
    if length > max_bytes:
        raise BrokenFrame(f"a frame has {length} bytes, but at most {max_bytes} are read")
    return kind, length


def write_frame(stream: IO[bytes], kind: bytes, *parts: bytes) -> None:
    stream.write(head_of(kind, *parts))
    for part in parts:
        stream.write(part)
    stream.flush()


def read_frame(stream: IO[bytes], max_bytes: int = MAX_BYTES) -> tuple[bytes, bytes] | None:
    """Kind and content; None at the end. Raises `BrokenFrame`."""
    head = stream.read(HEAD_BYTES)
    if not head:
        return None
    kind, length = read_head(head, max_bytes)
    content = stream.read(length)
    if len(content) < length:
        raise BrokenFrame("a frame ended in its content")
    return kind, content
