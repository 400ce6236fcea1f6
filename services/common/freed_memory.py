"""Memory that a process has freed goes back to the system, so that it shows what is held."""

import ctypes

_M_MMAP_THRESHOLD = -3
_LARGE_BLOCK_BYTES = 1024 * 1024


def return_freed_memory() -> None:
    """For a process that now and then holds much and then little.

    Left alone, glibc learns from each large block that is freed to keep the next ones, and what lies before
    them: a process stays as large as its largest upload made it. Where there is no glibc, nothing is done.
    """
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
