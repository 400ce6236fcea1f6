"""Finds duplicate ids in a file of any length: records of ids are spilled to disk in runs.

Ids are compared by 128 bits of BLAKE2. Among 50 million ids the chance of a collision is 10^-23.
"""

import hashlib
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from operator import attrgetter
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Records = NDArray[np.uint64]

RUN_IDS = 256 * 1024
# Runs are read back in this many ranges of digests.
_RANGES = 256
# Two different ids among 50 million are equal with a chance of 1 in 10**23.
_DIGEST_BYTES = 16
# The digest and the line: three words.
_RECORD = struct.Struct("=16sQ")
_WORDS = 3


@dataclass(frozen=True, slots=True)
class Duplicate:
    line: int
    first_line: int


@dataclass(frozen=True, slots=True)
class Duplicates:
    """The first duplicates by line, and the number of lines that repeat an earlier id."""

    first: tuple[Duplicate, ...]
    count: int


class SeenIds:
    """Takes lines in order. `keep` is the number of duplicates that are reported."""

    def __init__(self, keep: int, run_ids: int = RUN_IDS) -> None:
        self._keep = keep
        self._run_bytes = run_ids * _RECORD.size
        self._run = bytearray()
        self._spilled: _SpilledRuns | None = None

    def add(self, name: str, line: int) -> None:
        digest = hashlib.blake2b(name.encode(), digest_size=_DIGEST_BYTES).digest()
        self._run += _RECORD.pack(digest, line)
        if len(self._run) >= self._run_bytes:
            self._spill()

    def duplicates(self) -> Duplicates:
        """Call once, after the last line."""
        if self._spilled is None:
            found = list(_duplicates_in(self._run))
            return Duplicates(tuple(found[: self._keep]), len(found))
        self._spill()
        first: list[Duplicate] = []
        count = 0
        for lines, first_lines in self._spilled.repeated():
            count += len(lines)
            indexes = lines.argsort()[: self._keep]
            first += [Duplicate(int(lines[index]), int(first_lines[index])) for index in indexes]
        return Duplicates(tuple(nsmallest(self._keep, first, key=attrgetter("line"))), count)

    def close(self) -> None:
        if self._spilled is not None:
            self._spilled.close()

    def _spill(self) -> None:
        self._spilled = self._spilled or _SpilledRuns()
        self._spilled.add(self._run)
        self._run = bytearray()


def _duplicates_in(run: bytearray) -> Iterator[Duplicate]:
    first_lines: dict[bytes, int] = {}
    for digest, line in _RECORD.iter_unpack(run):
        first = first_lines.setdefault(digest, line)
        if first != line:
            yield Duplicate(line, first)


class _SpilledRuns:
    """Runs of records in an unnamed temporary file, each sorted by ranges of digests."""

    def __init__(self) -> None:
        # Importing takes half a second and 20 MB: only if needed.
        import numpy as np  # noqa: PLC0415  # slow and large, and needed for large files only

        self._np = np
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="proctor-ids-")  # noqa: SIM115  # closed by `close`
        self._bounds: list[list[int]] = []
        self._records = 0

    def add(self, run: bytearray) -> None:
        np = self._np
        records = np.frombuffer(run, dtype=np.uint64).reshape(-1, _WORDS)
        ranges = records[:, 0] >> np.uint64(56)
        order = ranges.argsort(kind="stable")
        edges = np.searchsorted(ranges[order], np.arange(_RANGES + 1, dtype=np.uint64))
        self._bounds.append([self._records + int(edge) for edge in edges])
        self._records += len(records)
        self._file.write(records[order].tobytes())

    def repeated(self) -> "Iterator[tuple[Records, Records]]":
        """Yields by ranges the lines that repeat an earlier digest, and the first line of each."""
        np = self._np
        for number in range(_RANGES):
            parts = [self._read(bounds[number], bounds[number + 1]) for bounds in self._bounds]
            records = np.frombuffer(b"".join(parts), dtype=np.uint64).reshape(-1, _WORDS)
            # Records are in line order, and the sort is stable.
            records = records[np.lexsort((records[:, 1], records[:, 0]))]
            is_again = np.zeros(len(records), dtype=bool)
            is_again[1:] = (records[1:, :2] == records[:-1, :2]).all(axis=1)
            # For each record, the index of the first record of its group.
            firsts = np.maximum.accumulate(np.where(is_again, 0, np.arange(len(records))))
            yield records[is_again, 2], records[firsts[is_again], 2]

    def _read(self, start: int, end: int) -> bytes:
        self._file.seek(start * _RECORD.size)
        return self._file.read((end - start) * _RECORD.size)

    def close(self) -> None:
        self._file.close()
