"""Bytes of files in parts of one size: any range of them comes back as it went in."""

import random

import pytest

from services.common.errors import ObjectStoreUnavailable
from services.scheduler.uploads.checking.check_batch_file import (
    BatchFileCheck,
    BatchLimits,
    CheckBatchFile,
    CheckedBatchFile,
)
from services.scheduler.uploads.errors import FileTooLarge
from services.scheduler.uploads.quotas.storage_use import NO_QUOTA
from services.scheduler.uploads.storage.store_parts import PartCutter, bytes_part_key, parts_from
from services.scheduler.uploads.stored_file import FileHeader, FileId, bytes_prefix, rows_prefix
from tests.fakes.storage.checked_files import batch_line, jsonl
from tests.fakes.storage.memory_objects import MemoryObjects

FILE = FileId("file-1")
MAX_BYTES = 20_000_000


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 1000, 1234])
def test_parts_are_of_one_size_but_the_last(size: int) -> None:
    content = random.Random(size).randbytes(size)
    cutter = PartCutter(100)
    parts: list[bytes] = []
    for start in range(0, size, 37):
        parts += map(b"".join, cutter.add(content[start : start + 37]))
    parts += map(b"".join, cutter.end())
    assert (b"".join(parts), cutter.size) == (content, size)
    assert {len(part) for part in parts[:-1]} <= {100}
    for first in (0, 1, 99, 100, 101, size - 1, size):
        if 0 <= first <= size:
            read = [
                parts[part][start : start + length] for part, start, length in parts_from(size, first, 100)
            ]
            assert b"".join(read) == content[first:]


def test_one_large_piece_becomes_several_parts() -> None:
    assert [sum(map(len, part)) for part in PartCutter(10).add(b"x" * 35)] == [10, 10, 10]


def test_a_part_that_comes_in_many_small_pieces_is_held_in_few() -> None:
    content = random.Random(1).randbytes(1_000_000)
    cutter = PartCutter()
    for start in range(0, len(content), 2):
        assert not list(cutter.add(content[start : start + 2]))
    [part] = cutter.end()
    assert (b"".join(part), len(part) < 300) == (content, True)


class Checks:
    def __init__(self, objects: MemoryObjects | None = None) -> None:
        self.objects = objects or MemoryObjects()

    def check(self, content: bytes) -> CheckedBatchFile:
        chunks = (content[start : start + 65_536] for start in range(0, len(content), 65_536))
        header, limits = FileHeader("x.jsonl", "ann"), BatchLimits(MAX_BYTES, 1000)
        check = BatchFileCheck(header=header, file_id=FILE, quota=NO_QUOTA, limits=limits)
        return CheckBatchFile(self.objects).check(check, chunks)

    def stored(self) -> bytes:
        prefix = bytes_prefix(FILE)
        parts = sorted(key for key in self.objects.contents if key.startswith(prefix))
        assert parts == [bytes_part_key(prefix, number) for number in range(len(parts))]
        return b"".join(self.objects.contents[key] for key in parts)

    def has_rows(self) -> bool:
        return any(key.startswith(rows_prefix(FILE)) for key in self.objects.contents)


SOUND = jsonl(batch_line(number) for number in range(500))
LONG_TAIL = b"{}\n" * 100_000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        SOUND[:-30] + b"\n",
        b"[1, 2]\n" + LONG_TAIL,
        b"\xff\xfe" + LONG_TAIL,
        b"\x1f\x8b no gzip" + LONG_TAIL,
        SOUND + LONG_TAIL,
    ],
)
def test_faulty_file_is_kept_byte_by_byte_to_its_end(content: bytes) -> None:
    checks = Checks()
    checked = checks.check(content)
    assert (checked.rows.facts, checked.rows.fault_count > 0) == (None, True)
    assert (checks.stored(), checked.size_bytes) == (content, len(content))


def test_sound_file_has_its_bytes_and_its_rows() -> None:
    checks = Checks()
    checked = checks.check(SOUND)
    assert checked.rows.facts is not None
    assert checked.rows.facts.row_count == 500
    assert (checks.stored(), checks.has_rows(), checked.rows.fault_count) == (SOUND, True, 0)


def test_too_large_a_file_is_reported_while_it_comes() -> None:

    with pytest.raises(FileTooLarge) as refused:
        Checks().check(b" " * (MAX_BYTES + 1))
    assert refused.value.facts == {"name": "x.jsonl", "limit": 20000000, "when": ""}


def test_store_that_fails_in_the_middle_ends_the_check() -> None:
    heavy = jsonl(batch_line(number, body={"model": "m", "prompt": "x" * 100_000}) for number in range(150))
    with pytest.raises(ObjectStoreUnavailable):
        Checks(MemoryObjects(refuse_after=1)).check(heavy)
