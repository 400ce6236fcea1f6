"""Start and stop of a service, ready when what it needs answers and down in five steps."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import NoReturn, Protocol

from services.common.errors import DomainError
from services.common.structured_logs import get_logger

log = get_logger()


class RunningService(Protocol):
    """A service between its start and its end."""

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # a state, not an option
        """Tells health checks whether the service takes work."""
        ...

    async def wait_failed(self) -> None:
        """Ends, or raises, when a vital task of the service has ended."""
        ...

    async def stop_taking_work(self) -> None:
        """Takes nothing new."""
        ...

    async def drain(self) -> None:
        """Finishes what it has, within its own limit."""
        ...


ServiceContext = Callable[[], AbstractAsyncContextManager[RunningService]]


async def run_service(name: str, context: ServiceContext, *, notice_seconds: float = 0.0) -> int:
    """Runs until SIGTERM or SIGINT, or until a vital task fails; gives the exit code.

    `notice_seconds` is how long a stopping service keeps serving after it reported that it is not ready, so
    that load balancers can notice.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    has_started = asyncio.Event()

    async def live() -> int:
        async with context() as service:
            has_started.set()
            return await _serve(name, service, stop, notice_seconds)

    life = asyncio.ensure_future(live())
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((life, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not life.done() and not has_started.is_set():
            life.cancel()  # stopped while starting: a half-made start is undone
        return await life
    except asyncio.CancelledError:
        return 0
    except DomainError as error:
        log.error("cannot go on", message=error.message, reason=error.reason)
        return 1
    finally:
        stopped.cancel()


async def _serve(name: str, service: RunningService, stop: asyncio.Event, notice_seconds: float) -> int:
    await service.set_ready(True)
    log.info("ready", name=name)
    stopped = asyncio.ensure_future(stop.wait())
    failed = asyncio.ensure_future(service.wait_failed())
    await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
    code = 0
    if failed.done():
        code = 1
        log.error("a vital task ended", name=name, exc_info=failed.exception())
    else:
        failed.cancel()
    stopped.cancel()
    await service.set_ready(False)
    log.info("stopping", name=name)
    await asyncio.sleep(notice_seconds)
    await service.stop_taking_work()
    await service.drain()
    return code


async def every(seconds: float, step: Callable[[], Awaitable[None]], *, name: str) -> NoReturn:
    """Calls `step` for ever with a pause between; a failure is logged and the next call still comes."""
    while True:
        try:
            with cancellation_kept():
                await step()
        except Exception as error:  # noqa: BLE001  # the edge of a loop that must not end
            log.warning("periodic step failed", step=name, error=repr(error))
        await asyncio.sleep(seconds)


@contextmanager
def cancellation_kept() -> Iterator[None]:
    """Raises CancelledError where the task was cancelled inside, whatever the body made of that.

    `asyncio.wait_for` of Python 3.11, which nats-py uses throughout, gives its result or its timeout when
    these come together with a cancellation.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    finally:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError
