"""Compressed files are detected from their first bytes, whatever their name; a bomb costs no memory."""

import gzip
import tracemalloc
from collections.abc import Callable

import pytest
from zstandard import ZstdCompressor

from services.scheduler.uploads.checking.compression import CHUNK_BYTES, decompressed_chunks
from services.scheduler.uploads.errors import DatasetTooLarge
from tests.fakes.storage.checked_files import NO_LIMITS, CheckedFiles, batch_line, jsonl, problem_of
from tests.fakes.thorough_cases import first_cases

CONTENT = jsonl(batch_line(number) for number in range(3000))
ZSTD = ZstdCompressor().compress
COMPRESSED = {
    "gzip": gzip.compress(CONTENT),
    "zstd": ZSTD(CONTENT),
    "gzip in members": gzip.compress(CONTENT[:999]) + gzip.compress(CONTENT[999:]),
    "zstd in frames": ZSTD(CONTENT[:999]) + ZSTD(CONTENT[999:]),
}


@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize("piece_bytes", [1, 977, 2**20])
def test_compressed_file_has_the_rows_of_the_plain_one(kind: str, piece_bytes: int) -> None:
    plain, compressed = CheckedFiles(), CheckedFiles()
    checked = compressed.check(COMPRESSED[kind], piece_bytes=piece_bytes)
    assert checked.size_bytes == len(COMPRESSED[kind])
    assert compressed.rows(checked) == plain.rows(plain.check(CONTENT))


@pytest.mark.parametrize("kind", COMPRESSED)
def test_compressed_file_that_is_cut_off_or_broken_is_refused(kind: str) -> None:
    content = COMPRESSED[kind]
    word = kind.split(maxsplit=1)[0]
    assert problem_of(content[:-3]) == f"It ends in the middle of its {word} data. Upload it again, whole."
    assert problem_of(content + b"more").startswith(f"It begins as {word} but is not: ")


@first_cases(1, "compress", [gzip.compress, ZSTD])
def test_bomb_is_bounded_by_what_it_decompresses_to(compress: Callable[[bytes], bytes]) -> None:
    bomb = compress(b" " * 300_000_000)
    assert len(bomb) < 400_000
    limits = type(NO_LIMITS)(2**40, 60_000_000, 2**40)
    tracemalloc.start()
    with pytest.raises(DatasetTooLarge):
        CheckedFiles(limits=limits).check(bomb)
    assert tracemalloc.get_traced_memory()[1] < 120_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("compress", [gzip.compress, ZSTD])
def test_file_that_expands_as_no_rows_do_is_refused_before_it_is_read(
    compress: Callable[[bytes], bytes],
) -> None:
    assert problem_of(compress(b" " * 100_000_000)).startswith(
        "It decompresses to more than 200 times its size."
    )
    assert CheckedFiles().check(compress(jsonl([{"prompt": "x"}] * 10_000))).facts is not None


def test_no_piece_is_large_or_empty() -> None:
    for content in (b"x" * 5_000_000, gzip.compress(b"x" * 5_000_000), ZSTD(b"x" * 5_000_000)):
        sizes = [len(chunk) for chunk in decompressed_chunks([content[:1], b"", content[1:]])]
        assert sum(sizes) == 5_000_000
        assert all(0 < size <= CHUNK_BYTES for size in sizes)
