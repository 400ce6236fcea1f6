"""How uploads are stored as objects: bytes in parts of one size, rows in parts of zstd frames with an index.

A part of rows by itself is a zstd file of JSON lines. Reading a row fetches the index and its frame only.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson
from zstandard import ZstdCompressor, ZstdDecompressor

from services.scheduler.uploads.dataset import DatasetContent, DatasetRow, row_from_line
from services.scheduler.uploads.ports import Objects, ObjectStore

# Each upload holds one part in memory; smaller parts would be many requests to the store.
PART_BYTES = 8 * 1024 * 1024
# Smaller chunks are joined: an object of two bytes takes fifty.
_SMALL_BYTES = 4096
# A frame is decompressed whole to read one of its rows.
FRAME_ROWS = 1000
FRAME_BYTES = 1024 * 1024
# Fastest: level 2 saves a twentieth of the space, and costs as much as a third of the whole check.
_LEVEL = 1


def bytes_part_key(prefix: str, part: int) -> str:
    return f"{prefix}/bytes-{part:06}"


class PartCutter:
    """Cuts chunks of any size into parts; holds at most one part."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        self.size = 0
        self._part_bytes = part_bytes
        self._held: list[bytes] = []
        self._room = part_bytes

    def add(self, chunk: bytes) -> Iterator[Sequence[bytes]]:
        """Yields the parts that are now full, each as its chunks."""
        self.size += len(chunk)
        while len(chunk) >= self._room:
            self._hold(chunk[: self._room])
            chunk = chunk[self._room :]
            yield self._taken()
        if chunk:
            self._hold(chunk)
            self._room -= len(chunk)

    def end(self) -> Iterator[Sequence[bytes]]:
        """Yields the last part, unless it is empty."""
        if self._held:
            yield self._taken()

    def _hold(self, chunk: bytes) -> None:
        if self._held and len(self._held[-1]) < _SMALL_BYTES:
            self._held[-1] += chunk
        else:
            self._held.append(chunk)

    def _taken(self) -> Sequence[bytes]:
        taken, self._held, self._room = self._held, [], self._part_bytes
        return taken


def parts_from(size: int, first_byte: int, part_bytes: int = PART_BYTES) -> Iterator[tuple[int, int, int]]:
    """Yields part, start and length of each read, for a file of `size` bytes from a byte on."""
    while first_byte < size:
        part, start = divmod(first_byte, part_bytes)
        length = min(part_bytes - start, size - first_byte)
        yield part, start, length
        first_byte += length


class StoreBytes:
    """Stores the bytes of a file part by part. Blocks, so it is called in a thread."""

    def __init__(self, objects: Objects, prefix: str) -> None:
        self._objects = objects
        self._prefix = prefix
        self._cutter = PartCutter()
        self._parts = 0

    @property
    def size(self) -> int:
        return self._cutter.size

    def add(self, chunk: bytes) -> None:
        self._put(self._cutter.add(chunk))

    def end(self) -> None:
        self._put(self._cutter.end())

    def _put(self, parts: Iterable[Sequence[bytes]]) -> None:
        for part in parts:
            self._objects.put(bytes_part_key(self._prefix, self._parts), part)
            self._parts += 1


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows from `first_doc_id` on: `length` bytes of a part, from byte `start`."""

    first_doc_id: int
    part: int
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class FrameIndex:
    frames: Sequence[Frame]

    def position(self, row: int) -> int:
        """Index in `frames` of the frame that contains the row."""
        return bisect_right(self.frames, row, key=lambda frame: frame.first_doc_id) - 1

    def to_json(self) -> bytes:
        return orjson.dumps([[one.first_doc_id, one.part, one.start, one.length] for one in self.frames])


def index_from_json(content: bytes) -> FrameIndex:
    return FrameIndex([Frame(*numbers) for numbers in orjson.loads(content)])


def part_key(prefix: str, part: int) -> str:
    return f"{prefix}/rows-{part:06}.jsonl.zst"


def index_key(prefix: str) -> str:
    return f"{prefix}/index.json"


class StoreRows:
    """Compresses lines and stores them part by part; holds the frames of at most one part. Blocks.

    `row_count` and `stored_bytes` are of the frames that are complete, and of the index in the end.
    """

    def __init__(self, objects: Objects, prefix: str) -> None:
        self.row_count = 0
        self.stored_bytes = 0
        self._objects = objects
        self._prefix = prefix
        self._compressor = ZstdCompressor(level=_LEVEL)
        self._lines: list[bytes] = []
        self._line_bytes = 0
        self._part: list[bytes] = []
        self._part_bytes = 0
        self._parts = 0
        self._frames: list[Frame] = []

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._line_bytes += len(line)
        if len(self._lines) < FRAME_ROWS and self._line_bytes < FRAME_BYTES:
            return
        self._end_frame()
        if self._part_bytes >= PART_BYTES:
            self._end_part()

    def end(self) -> None:
        """Stores the last part and the index."""
        if self._lines:
            self._end_frame()
        if self._part:
            self._end_part()
        index = FrameIndex(self._frames).to_json()
        self._objects.put(index_key(self._prefix), [index])
        self.stored_bytes += len(index)

    def _end_frame(self) -> None:
        frame = self._compressor.compress(b"\n".join(self._lines) + b"\n")
        self._frames.append(Frame(self.row_count, self._parts, self._part_bytes, len(frame)))
        self.row_count += len(self._lines)
        self.stored_bytes += len(frame)
        # Copied, because the frame keeps its larger buffer.
        self._part.append(bytes(memoryview(frame)))
        self._part_bytes += len(frame)
        self._lines, self._line_bytes = [], 0

    def _end_part(self) -> None:
        self._objects.put(part_key(self._prefix, self._parts), self._part)
        self._part, self._part_bytes = [], 0
        self._parts += 1


@dataclass(frozen=True, slots=True)
class LoadRows:
    """Reads stored rows from any row on. Blocks, so it is called in a thread."""

    objects: ObjectStore

    def rows_from(self, content: DatasetContent, first_doc_id: int) -> Iterator[DatasetRow]:
        return (row_from_line(doc_id, line) for doc_id, line in self.lines_from(content, first_doc_id))

    def lines_from(self, content: DatasetContent, first_doc_id: int) -> Iterator[tuple[int, bytes]]:
        """Yields each row's number and its stored line, in order to the last one."""
        if first_doc_id >= content.facts.row_count:
            return
        index = index_from_json(self.objects.get(index_key(content.prefix)))
        for frame in index.frames[index.position(first_doc_id) :]:
            key = part_key(content.prefix, frame.part)
            compressed = self.objects.get_range(key, frame.start, frame.length)
            lines = ZstdDecompressor().decompress(compressed).removesuffix(b"\n").split(b"\n")
            for row, line in enumerate(lines, frame.first_doc_id):
                if row >= first_doc_id:
                    yield row, line
