"""Reads the body of an answer that comes as a whole, and no more of it than any answer has."""

from __future__ import annotations

import aiohttp

from services.worker.engine import ProviderFailed

# The longest answer of all may be a million letters, each of them written as an escape of twelve.
MOST_BYTES = 16 * 1024 * 1024
# Of an echoed prompt each token comes back with its place and its log-probabilities.
_ECHOED_BYTES_PER_BYTE = 32


async def read_body(content: aiohttp.StreamReader, request_bytes: int) -> bytes:
    """Counted as it is unpacked, which little may become very much by."""
    most = MOST_BYTES + request_bytes * _ECHOED_BYTES_PER_BYTE
    pieces: list[bytes] = []
    held = 0
    while piece := await content.readany():
        held += len(piece)
        if held > most:
            raise ProviderFailed(f"The server's answer has more than {most:,} bytes, which no answer needs.")
        pieces.append(piece)
    return b"".join(pieces)
