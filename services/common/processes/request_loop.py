"""A process beside the service: reads requests from its input and writes replies.

Run as a module it calls functions. It imports little: its memory is limited.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence

from services.common.processes.frames import read_frame, write_frame
from services.common.processes.limits import limit_resources

REQUEST, REPLY = b"Q", b"A"
# A call beyond it fails with a MemoryError, and the service goes on.
MEMORY_BYTES = 4 * 1024**3


def answer_requests(answer: Callable[[bytes], bytes], memory_bytes: int) -> None:
    """Answer requests on standard input until it ends."""
    # A library's prints must not be taken for a reply.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Data alone: libraries reserve addresses far beyond what they use.
    limit_resources(data_bytes=memory_bytes)
    # Ctrl+C in a terminal reaches this process too: the service ends first, and this process with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while frame := read_frame(sys.stdin.buffer):
        write_frame(replies, REPLY, answer(frame[1]))


def _returned(request: bytes) -> bytes:
    function, arguments = _call(request)
    try:
        return pickle.dumps(function(*arguments))
    except Exception as error:  # noqa: BLE001  # the edge: it is raised on the other side
        return pickle.dumps(error)


def _call(request: bytes) -> tuple[Callable[..., object], Sequence[object]]:
    function, arguments = pickle.loads(request)  # noqa: S301  # the service's own
    return function, arguments


if __name__ == "__main__":
    answer_requests(_returned, MEMORY_BYTES)
