"""A process beside the service: reads pickled requests from its input and writes pickled replies.

Run as a module it calls functions. It imports little: its memory is limited.
"""

import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

SIZE_BYTES = 8
# A call beyond it fails with a MemoryError, and the service goes on.
MEMORY_BYTES = 4 * 1024**3


def frame(content: object) -> bytes:
    """Pickled, with its size in front."""
    pickled = pickle.dumps(content)
    return len(pickled).to_bytes(SIZE_BYTES) + pickled


def answer_requests(answer: Callable[[Any], object], memory_bytes: int) -> None:
    """Answer requests on standard input until it ends."""
    # What a library prints must not be taken for a reply.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Data alone: libraries reserve addresses far beyond what they use.
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    # Of a terminal: the service ends first, and this process with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while size := sys.stdin.buffer.read(SIZE_BYTES):
        request = pickle.loads(sys.stdin.buffer.read(int.from_bytes(size)))  # noqa: S301  # the service's own
        replies.write(frame(answer(request)))
        replies.flush()


def _returned(call: tuple[Callable[..., object], Sequence[object]]) -> object:
    function, arguments = call
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001  # the edge: it is raised on the other side
        return error


if __name__ == "__main__":
    answer_requests(_returned, MEMORY_BYTES)
