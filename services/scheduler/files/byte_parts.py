"""How the bytes of a file lie in the object store: in parts of one size, so any byte is found at once."""

from collections.abc import Iterable, Iterator

from services.scheduler.datasets.ports import ObjectStore

PART_BYTES = 8 * 1024 * 1024


def part_key(prefix: str, part: int) -> str:
    return f"{prefix}/bytes-{part:06}"


class PartCutter:
    """Cuts pieces of any size into parts; holds little more than one of them."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        self.size = 0
        self._part_bytes = part_bytes
        self._held = bytearray()

    def add(self, piece: bytes) -> Iterator[bytes]:
        """The parts that are full now."""
        self.size += len(piece)
        self._held += piece
        while len(self._held) >= self._part_bytes:
            yield bytes(memoryview(self._held)[: self._part_bytes])
            del self._held[: self._part_bytes]

    def end(self) -> Iterator[bytes]:
        """The last part, where anything is left for it."""
        if self._held:
            yield bytes(self._held)
            self._held.clear()


class StoredParts:
    """A file on its way into the object store, part by part. Blocks, so it is written in a thread."""

    def __init__(self, objects: ObjectStore, prefix: str) -> None:
        self._objects = objects
        self._prefix = prefix
        self._cutter = PartCutter()
        self._parts = 0

    @property
    def size(self) -> int:
        return self._cutter.size

    def add(self, piece: bytes) -> None:
        self._put(self._cutter.add(piece))

    def end(self) -> None:
        self._put(self._cutter.end())

    def _put(self, parts: Iterable[bytes]) -> None:
        for part in parts:
            self._objects.put(part_key(self._prefix, self._parts), part)
            self._parts += 1


def parts_from(size: int, first_byte: int, part_bytes: int = PART_BYTES) -> Iterator[tuple[int, int, int]]:
    """Part, start and length of what is read of it, for a file of that size from a byte on."""
    while first_byte < size:
        part, start = divmod(first_byte, part_bytes)
        length = min(part_bytes - start, size - first_byte)
        yield part, start, length
        first_byte += length
