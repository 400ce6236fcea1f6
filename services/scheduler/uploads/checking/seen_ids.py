"""Finds duplicate ids in a file of any length: sorted runs are spilled to disk.

Ids are compared by 128 bits of BLAKE2. Among 50 million ids the chance of a collision is 10^-23.
"""

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Records = NDArray[np.uint64]

RUN_IDS = 256 * 1024
# Runs are read back in this many ranges of digests.
_RANGES = 256
_DIGEST_BYTES = 16
# Two words of the digest and the line.
_WORDS = 3
_RECORD_BYTES = 8 * _WORDS


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
        self._run_ids = run_ids
        self._run: dict[bytes, int] = {}
        self._count = 0
        self._repeated: list[tuple[bytes, int]] = []
        self._spilled: _SpilledRuns | None = None

    def add(self, name: str, line: int) -> None:
        digest = hashlib.blake2b(name.encode(), digest_size=_DIGEST_BYTES).digest()
        if self._run.setdefault(digest, line) != line:
            self._count += 1
            if len(self._repeated) < self._keep:
                self._repeated.append((digest, line))
        elif len(self._run) >= self._run_ids:
            self._spill()

    def duplicates(self) -> Duplicates:
        """Call once, after the last line."""
        if self._spilled is None:
            found = (Duplicate(line, self._run[digest]) for digest, line in self._repeated)
            return Duplicates(tuple(found), self._count)
        if self._run:
            self._spill()
        return self._merged(self._spilled)

    def close(self) -> None:
        if self._spilled is not None:
            self._spilled.close()

    def _spill(self) -> None:
        self._spilled = self._spilled or _SpilledRuns()
        self._spilled.add(b"".join(self._run), list(self._run.values()))
        self._run.clear()

    def _merged(self, spilled: "_SpilledRuns") -> Duplicates:
        first: list[Duplicate] = []
        for records in spilled.ranges():
            again, first_lines = _repeated_in(records)
            self._count += len(again)
            indexes = again.argsort()[: self._keep]
            first += [Duplicate(int(again[index]), int(first_lines[index])) for index in indexes]
        # Duplicates within a run were not spilled; their first line may be in an earlier run.
        for digest, line in self._repeated:
            first.append(Duplicate(line, spilled.first_line(digest)))
        first.sort(key=lambda one: one.line)
        return Duplicates(tuple(first[: self._keep]), self._count)


class _SpilledRuns:
    """Sorted runs of records in an unnamed temporary file."""

    def __init__(self) -> None:
        # Importing takes half a second and 20 MB: only if needed.
        import numpy as np  # noqa: PLC0415

        self._np = np
        # Closed by `close`.
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="proctor-ids-")  # noqa: SIM115
        edges = [(number << 64) // _RANGES for number in range(1, _RANGES)]
        self._edges = np.array(edges, dtype=np.uint64)
        self._bounds: list[list[int]] = []
        self._records = 0

    def add(self, digests: bytes, lines: list[int]) -> None:
        """Adds a run of distinct digests."""
        np = self._np
        records = np.empty((len(lines), _WORDS), dtype=np.uint64)
        records[:, :2] = np.frombuffer(digests, dtype=">u8").reshape(-1, 2)
        records[:, 2] = lines
        records = records[records[:, 0].argsort()]
        inner = np.searchsorted(records[:, 0], self._edges)
        self._bounds.append([self._records + int(index) for index in (0, *inner, len(lines))])
        self._records += len(lines)
        self._file.write(records.tobytes())

    def ranges(self) -> Iterator["Records"]:
        for number in range(_RANGES):
            yield self._range(number)

    def _range(self, number: int) -> "Records":
        """Records with digests in this range, sorted by digest and line."""
        np = self._np
        parts = [self._read(bounds[number], bounds[number + 1]) for bounds in self._bounds]
        records = np.frombuffer(b"".join(parts), dtype=np.uint64).reshape(-1, _WORDS)
        # Runs are in line order, and the sort is stable.
        in_order: Records = records[np.lexsort((records[:, 1], records[:, 0]))]
        return in_order

    def _read(self, start: int, end: int) -> bytes:
        self._file.seek(start * _RECORD_BYTES)
        return self._file.read((end - start) * _RECORD_BYTES)

    def first_line(self, digest: bytes) -> int:
        words = [int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")]
        records = self._range(words[0] * _RANGES >> 64)
        lines = records[(records[:, 0] == words[0]) & (records[:, 1] == words[1]), 2]
        return int(lines.min())

    def close(self) -> None:
        self._file.close()


def _repeated_in(records: "Records") -> "tuple[Records, Records]":
    """From sorted records: lines that repeat an earlier digest, and the first line of each."""
    import numpy as np  # noqa: PLC0415

    is_again = np.zeros(len(records), dtype=bool)
    is_again[1:] = (records[1:, :2] == records[:-1, :2]).all(axis=1)
    # For each record, the index of the first record of its group.
    firsts = np.maximum.accumulate(np.where(is_again, 0, np.arange(len(records))))
    return records[is_again, 2], records[firsts[is_again], 2]
