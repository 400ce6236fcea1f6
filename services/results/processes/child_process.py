"""A process beside the service: reads pickled requests from its input and writes pickled replies.

Run as a module it calls functions. It imports little: its memory is limited.
"""

import copyreg
import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from operator import attrgetter
from typing import Any

from services.common.processes.frames import read_frame, write_frame
from services.common.processes.limits import limit_resources

REQUEST, REPLY = b"Q", b"A"
# A call beyond it fails with a MemoryError, and the service goes on.
MEMORY_BYTES = 4 * 1024**3


def pickle_by_fields(*types: type) -> None:
    """Pickles these frozen dataclasses, of two fields or more, by their fields in the constructor's order.

    By itself a dataclass with slots asks `fields()` for each value, which takes three times as long.
    """
    for each in types:
        values_of = attrgetter(*(field.name for field in fields(each)))
        copyreg.pickle(each, partial(_construction, values_of))


def _construction(
    values_of: Callable[[Any], tuple[object, ...]], value: object
) -> tuple[type, tuple[object, ...]]:
    return type(value), values_of(value)


def answer_requests(answer: Callable[[Any], object], memory_bytes: int) -> None:
    """Answer requests on standard input until it ends."""
    # A library's prints must not be taken for a reply.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    # Data alone: libraries reserve addresses far beyond what they use.
    limit_resources(data_bytes=memory_bytes)
    # Ctrl+C in a terminal reaches this process too: the service ends first, and this process with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while frame := read_frame(sys.stdin.buffer):
        request = pickle.loads(frame[1])  # noqa: S301  # the service's own
        write_frame(replies, REPLY, pickle.dumps(answer(request)))


def _returned(call: tuple[Callable[..., object], Sequence[object]]) -> object:
    function, arguments = call
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001  # the edge: it is raised on the other side
        return error


if __name__ == "__main__":
    answer_requests(_returned, MEMORY_BYTES)
