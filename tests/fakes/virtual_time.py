"""A loop whose time advances only while no task is ready: tests of waits take no time."""

import asyncio
import functools
import selectors
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import ParamSpec

START = datetime(2026, 1, 1, tzinfo=UTC)

# What a round of the loop takes at least, as it does in truth: a wait too short to be measured passes too.
_TICK = 1e-6

P = ParamSpec("P")


class _SkippingSelector(selectors.DefaultSelector):
    """Passes the time that it was to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        events = super().select(0)
        self.seconds += _TICK if events else max(_TICK, timeout)
        return events


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _SkippingSelector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.seconds


class LoopClock:
    """The time of the running loop, as a clock."""

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def in_virtual_time(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def whole() -> None:
            await test(*args, **kwargs)

        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(whole())

    return run
