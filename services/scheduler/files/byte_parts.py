"""How the bytes of a file lie in the object store: in parts of one size, so any byte is found at once."""

from collections.abc import Iterator, Sequence

PART_BYTES = 8 * 1024 * 1024
# Less is joined to the next: a chunk of two bytes takes fifty.
_SMALL_BYTES = 4096


def part_key(prefix: str, part: int) -> str:
    return f"{prefix}/bytes-{part:06}"


class PartCutter:
    """Cuts chunks of any size into parts; holds the chunks of one, the larger ones as they came."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        self.size = 0
        self._part_bytes = part_bytes
        self._held: list[bytes] = []
        self._room = part_bytes

    def add(self, chunk: bytes) -> Iterator[Sequence[bytes]]:
        """The parts that are full now, each as its chunks."""
        self.size += len(chunk)
        while len(chunk) >= self._room:
            self._hold(chunk[: self._room])
            chunk = chunk[self._room :]
            yield self._taken()
        if chunk:
            self._hold(chunk)
            self._room -= len(chunk)

    def end(self) -> Iterator[Sequence[bytes]]:
        """The last part, where anything is left for it."""
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
    """Part, start and length of what is read of it, for a file of that size from a byte on."""
    while first_byte < size:
        part, start = divmod(first_byte, part_bytes)
        length = min(part_bytes - start, size - first_byte)
        yield part, start, length
        first_byte += length
