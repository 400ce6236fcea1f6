"""The turn of threads that check uploads: one works at a time, the others in the order in which they asked.

Several at a time would each hold the interpreter, and the event loop would have to wait for all of them.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock


class Turn:
    """A lock that is handed to the thread that has waited longest; a plain lock has no order."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._is_taken = False
        self._waiting: deque[Lock] = deque()

    def take(self) -> None:
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return
            handed = Lock()
            handed.acquire()
            self._waiting.append(handed)
        handed.acquire()

    def give(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Takes the turn; `pass_turn` and `without_turn` refer to it in this thread."""
        self.take()
        mark = _TURN.set(self)
        try:
            yield
        finally:
            _TURN.reset(mark)
            self.give()


_TURN: ContextVar[Turn] = ContextVar("the turn that this thread holds")


def pass_turn() -> None:
    """Lets the others that wait work first. Called every few MiB unpacked; has no effect in other threads."""
    with without_turn():
        pass


@contextmanager
def without_turn() -> Iterator[None]:
    """Others work meanwhile: for waits, as for a sender or a store."""
    turn = _TURN.get(None)
    if turn is None:
        yield
        return
    turn.give()
    try:
        yield
    finally:
        turn.take()
