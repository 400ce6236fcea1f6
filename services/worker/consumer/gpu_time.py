"""The time of the worker's GPUs, divided among the samples that its engine works on."""

from collections.abc import Callable

from services.common.clock import Clock


class GpuTime:
    """Samples in flight share the GPUs equally at each moment: an engine batches them.

    A change takes the same time for any number of samples: `seconds_each` grows by the share of one sample,
    and the use of a sample is the growth since its start.
    """

    def __init__(self, clock: Clock, gpus: Callable[[], int]) -> None:
        self._clock = clock
        self._gpus = gpus
        self._samples_in_flight = 0
        self._advanced_at = clock.monotonic()
        self._seconds_each = 0.0

    @property
    def seconds_each(self) -> float:
        self._advance()
        return self._seconds_each

    def change(self, samples_in_flight: int) -> None:
        self._advance()
        self._samples_in_flight = samples_in_flight

    def _advance(self) -> None:
        now = self._clock.monotonic()
        if self._samples_in_flight:
            self._seconds_each += (now - self._advanced_at) * self._gpus() / self._samples_in_flight
        self._advanced_at = now
