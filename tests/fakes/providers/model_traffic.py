"""Requests at the model server by caller: a worker by its own path, else a model by its name."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Traffic:
    """Counts, and wall-clock times of the first request, the last answer and the last abort; 0 for never."""

    in_flight: int = 0
    answered: int = 0
    aborted: int = 0
    first_asked_at: float = 0.0
    last_answered_at: float = 0.0
    last_aborted_at: float = 0.0

    @contextmanager
    def request(self) -> Iterator[None]:
        self.first_asked_at = self.first_asked_at or time.time()
        self.in_flight += 1
        try:
            yield
        except asyncio.CancelledError:
            self.aborted += 1
            self.last_aborted_at = time.time()
            raise
        else:
            self.answered += 1
            self.last_answered_at = time.time()
        finally:
            self.in_flight -= 1


class TrafficByAsker:
    def __init__(self) -> None:
        self._of: dict[str, Traffic] = {}

    def of(self, asker: str) -> Traffic:
        return self._of.setdefault(asker, Traffic())

    def forget(self) -> None:
        """Begins anew; what is in flight is not counted any more."""
        self._of = {}

    def stats(self) -> dict[str, dict[str, float]]:
        return {asker: asdict(traffic) for asker, traffic in self._of.items()}
