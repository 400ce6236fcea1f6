"""Bytes of an upload become those of the file: gzip and zstd, told from the first bytes, are unpacked.

Pieces stay small however much a file unpacks to, so what a bomb unpacks to is counted before it is held.
"""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain

from zstandard import ZstdDecompressor, ZstdError

from services.scheduler.datasets.checking.faults import BrokenFile

PIECE_BYTES = 1024 * 1024
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# Tells zlib that a gzip header comes.
_GZIP_WINDOW = 31
# The frames of zstd say how much they want to look back on; the library's own command takes no more.
_ZSTD_WINDOW_BYTES = 128 * 1024 * 1024
# zstd has no limit for what one call gives: 4 bytes may become 128 KiB.
_ZSTD_BITE_BYTES = 1024


def decompressed_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """None is empty, and none larger than `PIECE_BYTES`. Raises `BrokenFile`."""
    first, rest = beginning(pieces, len(_ZSTD))
    whole = chain((first,), rest)
    if first.startswith(_GZIP):
        return _cut(_gunzipped(whole))
    if first.startswith(_ZSTD):
        return _cut(_unpacked_zstd(whole))
    return _cut(whole)


def beginning(pieces: Iterable[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """The first piece, with at least so many bytes where there are as many, and the pieces behind it."""
    rest, first = iter(pieces), b""
    while len(first) < size and (piece := next(rest, None)) is not None:
        first += piece
    return first, rest


def _cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        for start in range(0, len(piece), PIECE_BYTES):
            yield piece[start : start + PIECE_BYTES]


def _gunzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    engine = zlib.decompressobj(_GZIP_WINDOW)
    try:
        for piece in pieces:
            left = piece
            while left:
                if engine.eof:
                    engine = zlib.decompressobj(_GZIP_WINDOW)
                yield engine.decompress(left, PIECE_BYTES)
                left = engine.unused_data or engine.unconsumed_tail
    except zlib.error as error:
        raise BrokenFile(f"It begins as gzip but is not: {error}.") from error
    if not engine.eof:
        raise BrokenFile("It ends in the middle of its gzip data. Upload it again, whole.")


def _unpacked_zstd(pieces: Iterable[bytes]) -> Iterator[bytes]:
    unpacker = ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    engine = unpacker.decompressobj()
    try:
        for bite in _bites(pieces):
            left = bite
            while left:
                if engine.eof:
                    engine = unpacker.decompressobj()
                yield engine.decompress(left)
                left = engine.unused_data
    except ZstdError as error:
        raise BrokenFile(f"It begins as zstd but is not: {error}.") from error
    if not engine.eof:
        raise BrokenFile("It ends in the middle of its zstd data. Upload it again, whole.")


def _bites(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        for start in range(0, len(piece), _ZSTD_BITE_BYTES):
            yield piece[start : start + _ZSTD_BITE_BYTES]
