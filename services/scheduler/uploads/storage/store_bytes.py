"""How the bytes of a file are stored as objects: in parts of one size, so any byte is found directly."""

from collections.abc import Iterable, Iterator, Sequence

from services.scheduler.uploads.ports import ObjectStore

PART_BYTES = 8 * 1024 * 1024
# Smaller chunks are joined: an object of two bytes takes fifty.
_SMALL_BYTES = 4096


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


class ByteWriter:
    """Stores the bytes of a file part by part. Blocks, so it is called in a thread."""

    def __init__(self, objects: ObjectStore, prefix: str) -> None:
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
