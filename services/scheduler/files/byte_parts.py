"""How the bytes of a file lie in the object store: in parts of one size, so any byte is found at once."""

from collections.abc import Iterator

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


def parts_from(size: int, first_byte: int, part_bytes: int = PART_BYTES) -> Iterator[tuple[int, int, int]]:
    """Part, start and length of what is read of it, for a file of that size from a byte on."""
    while first_byte < size:
        part, start = divmod(first_byte, part_bytes)
        length = min(part_bytes - start, size - first_byte)
        yield part, start, length
        first_byte += length
