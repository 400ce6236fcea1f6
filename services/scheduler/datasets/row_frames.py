"""How rows lie in the object store: parts of zstd frames, each of some rows, and an index of where a row is.

A part by itself is a zstd file of JSON lines. A reader of row N takes the index, the frame that holds
the row, and no more.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson
from zstandard import ZstdCompressor, ZstdDecompressor

FRAME_ROWS = 1000
FRAME_BYTES = 1024 * 1024
PART_BYTES = 8 * 1024 * 1024
# The fastest: a second level would cost as much as a third of the whole check and save a twentieth.
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows from `first_row` on: `length` bytes from `start` on of a part."""

    first_row: int
    part: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class FrameIndex:
    frames: Sequence[Frame]

    def position(self, row: int) -> int:
        """Place in `frames` of the one that holds the row."""
        return bisect_right(self.frames, row, key=lambda frame: frame.first_row) - 1

    def to_json(self) -> bytes:
        return orjson.dumps([[one.first_row, one.part, one.start, one.length] for one in self.frames])


def index_from_json(content: bytes) -> FrameIndex:
    return FrameIndex([Frame(*numbers) for numbers in orjson.loads(content)])


def part_key(prefix: str, part: int) -> str:
    return f"{prefix}/rows-{part:06}.jsonl.zst"


def index_key(prefix: str) -> str:
    return f"{prefix}/index.json"


class FramePacker:
    """Packs lines; holds one part at most, as the frames of it: a part in one chunk would be a second one."""

    def __init__(self) -> None:
        self._compressor = ZstdCompressor(level=_LEVEL)
        self._lines: list[bytes] = []
        self._line_bytes = 0
        self._rows = 0
        self._part: list[bytes] = []
        self._part_bytes = 0
        self._parts = 0
        self._frames: list[Frame] = []

    def add(self, line: bytes) -> Sequence[bytes]:
        """Gives the chunks of a part when one is full: the next of them, counted from 0."""
        self._lines.append(line)
        self._line_bytes += len(line)
        if len(self._lines) < FRAME_ROWS and self._line_bytes < FRAME_BYTES:
            return ()
        self._end_frame()
        return self._taken_part() if self._part_bytes >= PART_BYTES else ()

    def end(self) -> Sequence[bytes]:
        """The last part, where anything is left for it."""
        if self._lines:
            self._end_frame()
        return self._taken_part()

    @property
    def index(self) -> FrameIndex:
        return FrameIndex(self._frames)

    def _end_frame(self) -> None:
        frame = self._compressor.compress(b"\n".join(self._lines) + b"\n")
        self._frames.append(Frame(self._rows, self._parts, self._part_bytes, len(frame)))
        self._rows += len(self._lines)
        # Copied, since the frame holds on to the room that it might have needed.
        self._part.append(bytes(memoryview(frame)))
        self._part_bytes += len(frame)
        self._lines, self._line_bytes = [], 0

    def _taken_part(self) -> Sequence[bytes]:
        part, self._part, self._part_bytes = self._part, [], 0
        self._parts += 1
        return part


def lines_of_frame(content: bytes) -> Iterable[bytes]:
    return _lines(ZstdDecompressor().decompress(content))


def _lines(content: bytes) -> Iterator[bytes]:
    yield from content.removesuffix(b"\n").split(b"\n")
