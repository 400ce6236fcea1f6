"""Ids of new sample sets."""

import secrets
import time
from uuid import UUID


def new_sample_set_id() -> str:
    """A UUID of version 7 (RFC 9562): milliseconds since 1970, then 74 random bits.

    Samples of a new set come last in their index, where Postgres adds rows without looking for their place.
    """
    time_bits = time.time_ns() // 1_000_000 << 80
    version, variant = 7 << 76, 0b10 << 62
    random_bits = secrets.randbits(12) << 64 | secrets.randbits(62)
    return str(UUID(int=time_bits | version | variant | random_bits))
