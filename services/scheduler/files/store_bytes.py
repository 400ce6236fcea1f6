"""Writes the bytes of a file into the object store as they come."""

from collections.abc import Iterable, Sequence

from services.scheduler.datasets.ports import ObjectStore
from services.scheduler.files.byte_parts import PartCutter, part_key


class StoreBytes:
    """Part by part. Blocks, so it is called in a thread."""

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
            self._objects.put(part_key(self._prefix, self._parts), part)
            self._parts += 1
